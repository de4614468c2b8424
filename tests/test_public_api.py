"""The public names, written down: to change one is to change this list and CHANGELOG.md."""

from importlib import import_module
from types import ModuleType

import pytest

PUBLIC_NAMES = {
    "sightline": [],
    "sightline.distributions": [
        "AbstractDistribution",
        "AbstractSparseDistribution",
        "Alignment",
        "Categorical",
        "Entmax",
        "KSubset",
        "LinearChain",
        "ProjectiveTree",
        "SemiMarkov",
        "SpanTree",
        "SpanningTree",
        "SparseChain",
        "Sparsemax",
        "Subset",
        "TopK",
    ],
    "sightline.estimators": ["perturb_and_map", "score_function", "straight_through"],
    "sightline.inference": [
        "AlignmentBest",
        "AlignmentSamples",
        "ChainBest",
        "ChainMarginals",
        "ChainSamples",
        "KSubsetBest",
        "KSubsetSamples",
        "ProjectiveBest",
        "ProjectiveSamples",
        "SemiMarkovBest",
        "SemiMarkovMarginals",
        "SemiMarkovSamples",
        "SpanBest",
        "SpanSamples",
        "SpanningBest",
        "SpanningSamples",
        "alignment_best",
        "alignment_log_partition",
        "alignment_marginals",
        "alignment_sample",
        "chain_best",
        "chain_log_partition",
        "chain_marginals",
        "chain_sample",
        "entmax_marginals",
        "entmax_maximum",
        "k_subset_best",
        "k_subset_log_partition",
        "k_subset_marginals",
        "k_subset_sample",
        "projective_best",
        "projective_log_partition",
        "projective_marginals",
        "projective_sample",
        "semi_markov_best",
        "semi_markov_log_partition",
        "semi_markov_marginals",
        "semi_markov_sample",
        "span_best",
        "span_log_partition",
        "span_marginals",
        "span_sample",
        "spanning_best",
        "spanning_log_partition",
        "spanning_marginals",
        "spanning_sample",
        "sparse_chain_marginals",
        "sparse_chain_maximum",
    ],
    "sightline.networks": [
        "AbstractBridge",
        "AbstractCell",
        "AbstractDecoder",
        "AbstractEncoder",
        "AbstractLayer",
        "AttentionDecoder",
        "Bidirectional",
        "BothWays",
        "CellState",
        "DecoderState",
        "Document",
        "DocumentEncoder",
        "ElmanCell",
        "EveryStep",
        "FactsEncoder",
        "FramesEncoder",
        "GRUCell",
        "HuggingFaceImageEncoder",
        "HuggingFaceTextEncoder",
        "ImageEncoder",
        "InitialState",
        "InputFeedingDecoder",
        "LSTMCell",
        "PlainDecoder",
        "Ran",
        "RecurrentStack",
        "StackRan",
        "StackState",
        "StackStep",
        "Step",
        "TextEncoder",
        "TokenOutput",
        "TreeEncoder",
        "Unconditioned",
        "Unrolled",
        "initialise_orthogonal",
        "initialise_uniform",
        "no_memory",
        "open_forget_gates",
        "recurrent_stack",
    ],
    "sightline.testing": [
        "check_attention",
        "check_cell",
        "check_decoder",
        "check_distribution",
        "check_encoder",
        "check_reader",
        "check_scorer",
    ],
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
