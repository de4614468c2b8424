"""The public names, written down: to change one is to change this list and CHANGELOG.md."""

from importlib import import_module
from types import ModuleType

import pytest

PUBLIC_NAMES = {
    "sightline": [],
    "sightline.distributions": [
        "AbstractDistribution",
        "Categorical",
        "LinearChain",
        "Subset",
        "TopK",
    ],
    "sightline.inference": [
        "ChainBest",
        "ChainMarginals",
        "ChainSamples",
        "chain_best",
        "chain_log_partition",
        "chain_marginals",
        "chain_sample",
    ],
    "sightline.testing": ["check_distribution"],
}


@pytest.mark.parametrize("package", PUBLIC_NAMES)
def test_the_public_names_are_these(package: str) -> None:
    members = vars(import_module(package)).items()
    names = sorted(
        name
        for name, member in members
        if not name.startswith("_") and not isinstance(member, ModuleType)
    )
    assert names == PUBLIC_NAMES[package]


def test_the_root_has_a_version() -> None:
    assert import_module("sightline").__version__ == "0.1.0"
