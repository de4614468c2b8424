"""Every malicious bundle is refused with a `BundleError`, quickly, in little memory and without a
connection. `FOVEAL_HOSTILE_BUNDLES=1000` draws more of them than CI does.
"""

import json
import os
from itertools import count, islice
from pathlib import Path

import pytest
import torch

from foveal.bundles import load_bundle
from foveal.errors import SpecError
from foveal.networks.encoders._hugging_face import backbone
from foveal.specs import to_json
from foveal.tasks import CaptioningSpec
from tests.tasks import hostile
from tests.tasks.hostile_loading import Outcome, load_all

pytestmark = pytest.mark.slow

NUM_DRAWN = int(os.environ.get("FOVEAL_HOSTILE_BUNDLES", "300"))
AT_ONCE = 340
SECONDS, MEGABYTES = 2.0, 500.0  # limits for loading
# Errors that show that an input was not checked.
ACCIDENTS = {"MemoryError", "RecursionError", "AttributeError", "IndexError", "AssertionError"}


def is_refused(outcome: Outcome) -> bool:
    """Return whether a bundle was refused; fail if it is neither refused nor usable."""
    assert outcome.kind in ("BundleError", "loaded"), outcome
    assert outcome.seconds < SECONDS, outcome
    assert outcome.megabytes < MEGABYTES, outcome
    assert outcome.cause not in ACCIDENTS, outcome
    assert "\n" not in outcome.text
    assert len(outcome.text) < 1500
    return outcome.kind == "BundleError"


def test_every_hostile_bundle_is_refused(tmp_path: Path) -> None:
    outcomes = load_all(list(hostile.named(tmp_path)))
    assert len(outcomes) > 160
    assert [outcome for outcome in outcomes if not is_refused(outcome)] == []


def test_drawn_changes_are_refused_or_harmless(tmp_path: Path) -> None:
    """Some changes, such as another dropout rate, are harmless and are not counted."""
    seeds, refused, harmless = count(), 0, 0
    while refused < NUM_DRAWN:
        folders = [hostile.drawn(tmp_path / str(seed), seed) for seed in islice(seeds, AT_ONCE)]
        outcomes = [is_refused(outcome) for outcome in load_all(folders)]
        refused += sum(outcomes)
        harmless += len(outcomes) - sum(outcomes)
    assert harmless < 0.15 * refused  # most random changes must be attacks


CONFIG = {
    "model_type": "resnet",
    "embedding_size": 4,
    "hidden_sizes": [4, 4],
    "depths": [1, 1],
    "layer_type": "basic",
    "out_features": ["stage2"],
}


def test_a_bundle_cannot_ask_for_weights_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    names = ("someone/model", "/etc", ".")
    folders = []
    for number, weights in enumerate(names):
        data = json.loads(to_json(CaptioningSpec()))
        config = json.dumps(CONFIG)
        data["model"]["encoder"] = {
            "kind": "backbone",
            "config": config,
            "weights": weights,
            "stride": 8,
        }
        files = hostile.files_of(hostile.STORED[-1])
        files["spec.json"] = json.dumps(data).encode()
        folders.append(hostile.sealed(tmp_path / str(number), files))
    for outcome, weights in zip(load_all(folders), names, strict=True):
        assert is_refused(outcome)
        assert f"encoder.weights is {weights!r}, expected none" in outcome.text


@pytest.mark.parametrize(
    "settings",
    [
        {"auto_map": {"AutoBackbone": "someone/model--code.Model"}},
        {"attn_implementation": "someone/kernel"},
        {"_attn_implementation": "someone/kernel:function"},
        {"attn_implementation": {"vision": "someone/kernel"}},
        {"use_pretrained_backbone": True},
        {"quantization_config": {"quant_method": "custom"}},
        {"depths": [10**9, 1]},
        {"hidden_sizes": [10**30, 1]},
    ],
    ids=str,
)
def test_a_configuration_fetches_nothing_and_is_of_a_sane_size(settings: dict) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(SpecError, match=r"which is refused|expected at most"):
        backbone(json.dumps({**CONFIG, **settings}))


def test_loading_draws_no_random_numbers() -> None:
    before = torch.get_rng_state()
    for folder in hostile.STORED:
        load_bundle(folder)
    assert torch.equal(torch.get_rng_state(), before)
