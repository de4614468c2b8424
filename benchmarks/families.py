"""All measured families, with their sizes and peers."""

from .alignment_cases import alignments, ctc
from .cases import Family, Size
from .chain_cases import chain_edges, chain_unary, semi_markov
from .tree_cases import projective_trees, span_trees, spanning_trees

CHAIN_SIZES: tuple[Size, ...] = (
    (32, 25, 2),
    (64, 25, 2),
    (32, 100, 2),
    (32, 50, 20),
    (16, 200, 50),
    (16, 1000, 10),
)
TREE_SIZES: tuple[Size, ...] = ((32, 10), (32, 20), (32, 40), (16, 80))
SPAN_SIZES: tuple[Size, ...] = ((32, 20), (32, 40))
SEGMENT_SIZES: tuple[Size, ...] = ((32, 25, 5, 2), (16, 50, 8, 4), (8, 25, 4, 16))
GRID_SIZES: tuple[Size, ...] = ((32, 16, 16), (32, 50, 50), (16, 100, 100), (16, 200, 60))
CTC_SIZES: tuple[Size, ...] = ((32, 50, 10), (16, 200, 40), (16, 500, 60))
TREE_BUDGET = 4.0

FAMILIES = (
    Family(
        structure="chain",
        form="edges",
        axes="(batch, length, states)",
        build=chain_edges,
        sizes=CHAIN_SIZES,
        peers=("torch-struct",),
    ),
    Family(
        structure="chain",
        form="unary",
        axes="(batch, length, states)",
        build=chain_unary,
        sizes=CHAIN_SIZES,
        peers=("pytorch-crf", "supar"),
    ),
    Family(
        structure="semi-Markov",
        form="segments",
        axes="(batch, length, lengths of a segment, labels)",
        build=semi_markov,
        sizes=SEGMENT_SIZES,
        peers=("torch-struct",),
        budget=TREE_BUDGET,
    ),
    Family(
        structure="projective tree",
        form="multi-root",
        axes="(batch, words)",
        build=projective_trees,
        sizes=TREE_SIZES,
        peers=("torch-struct", "supar"),
        budget=TREE_BUDGET,
    ),
    Family(
        structure="spanning tree",
        form="multi-root",
        axes="(batch, words)",
        build=spanning_trees,
        sizes=TREE_SIZES,
        peers=("torch-struct", "supar"),
        budget=TREE_BUDGET,
    ),
    Family(
        structure="span tree",
        form="unlabelled",
        axes="(batch, words)",
        build=span_trees,
        sizes=SPAN_SIZES,
        peers=("torch-struct", "supar"),
        budget=TREE_BUDGET,
    ),
    Family(
        structure="alignment",
        form="grid",
        axes="(batch, source items, target items)",
        build=alignments,
        sizes=GRID_SIZES,
        peers=(),
        budget=TREE_BUDGET,
    ),
    Family(
        structure="CTC",
        form="full lengths",
        axes="(batch, frames, labels)",
        build=ctc,
        sizes=CTC_SIZES,
        peers=("torch",),
        budget=TREE_BUDGET,
    ),
)


def family_named(name: str) -> Family:
    """Return the family of a name, such as "chain edges"."""
    for family in FAMILIES:
        if family.name == name:
            return family
    raise ValueError(f"No family is named {name!r}; there are {[each.name for each in FAMILIES]}.")
