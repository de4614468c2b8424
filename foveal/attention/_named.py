"""The attentions that have names: each is a choice of scorer, distribution and reader.

Axes: *batch any leading shape, Q queries, S places, D width of a query, V width of a value.
"""

from functools import partial

from ..distributions import Categorical, ProjectiveTree, SpanningTree, Sparsemax, Subset
from ..errors import ValueRangeError
from ._attention import Attention
from ._distribute import (
    chain_over_steps,
    head_selection,
    local_window,
    monotone_alignment,
    per_memory,
    per_query,
)
from ._grids import ExpectedPath, PathScorer, PerQueryOnGrid, path, runs
from ._readers import (
    AbstractReader,
    AlignedValue,
    ExpectedChildReader,
    ExpectedHeadReader,
    ExpectedSelection,
    ExpectedValue,
    SelectedHeadReader,
)
from ._scorers import AbstractScorer, AdditiveScorer, LocalScorer
from ._structured_scorers import ArcScorer, SelectionScorer, StepScorer


def _scorer(scorer: AbstractScorer | None, query_size: int, value_size: int) -> AbstractScorer:
    """The one given, or an additive scorer as wide as the query."""
    return scorer or AdditiveScorer(query_size, value_size, hidden_size=query_size)


def softmax_attention(
    query_size: int, value_size: int, scorer: AbstractScorer | None = None
) -> Attention:
    """One place is read: weights = softmax(scores) (Bahdanau et al. 2015, eq. 5 and 6).

    >>> softmax_attention(4, 6).scorer
    AdditiveScorer(
      (query): Linear(in_features=4, out_features=4, bias=False)
      (key): Linear(in_features=6, out_features=4, bias=True)
      (combine): Linear(in_features=4, out_features=1, bias=False)
    )
    """
    return Attention(
        scorer=_scorer(scorer, query_size, value_size),
        distribute=per_query(Categorical),
        reader=ExpectedValue(),
    )


def sigmoid_attention(
    query_size: int, value_size: int, scorer: AbstractScorer | None = None
) -> Attention:
    """Each place is read or not by itself: weights = sigmoid(scores) (Kim et al. 2017, section 4.2)."""
    return Attention(
        scorer=_scorer(scorer, query_size, value_size),
        distribute=per_query(Subset),
        reader=ExpectedValue(),
    )


def segment_attention(
    query_size: int,
    value_size: int,
    scorer: AbstractScorer | None = None,
    *,
    total: float | None = None,
) -> Attention:
    """Runs of neighboring places are read: a chain of the states "skip" and "read" whose learned
    transitions let a place follow its neighbor (Kim et al. 2017, section 3.1).

        weights[s] = p(z_s = read), or scaled to `total` (the paper's lambda = 2)

    On a grid no run goes on from the end of a row to the beginning of the next.
    """
    return Attention(
        scorer=SelectionScorer(_scorer(scorer, query_size, value_size)),
        distribute=PerQueryOnGrid(runs),
        reader=ExpectedSelection(state=1, total=total),
    )


def path_attention(
    query_size: int,
    value_size: int,
    scorer: AbstractScorer | None = None,
    *,
    total: float | None = 1.0,
) -> Attention:
    """At most one cell of each column of a grid is read: a chain over columns whose states are "skip"
    and the rows, with learned scores for skipping, staying in a row and leaving it.

        weights[r, c] = p(column c is read in row r), scaled to `total`
    """
    return Attention(
        scorer=PathScorer(_scorer(scorer, query_size, value_size)),
        distribute=PerQueryOnGrid(path),
        reader=ExpectedPath(total),
    )


def k_step_attention(
    query_size: int,
    value_size: int,
    scorer: AbstractScorer | None = None,
    *,
    repeat: bool = True,
) -> Attention:
    """A chain over facts: query k is step k, each step reads one place, and which one depends on
    the step before (Kim et al. 2017, section 4.3).

        weights[k, s] = p(step k reads s)
    """
    return Attention(
        scorer=StepScorer(_scorer(scorer, query_size, value_size), value_size, repeat=repeat),
        distribute=chain_over_steps,
        reader=ExpectedValue(),
    )


def syntactic_attention(
    query_size: int,
    value_size: int,
    hidden_size: int,
    *,
    key_size: int | None = None,
    projective: bool = True,
    single_root: bool = True,
    bounded: bool = False,
    read: str = "heads",
) -> Attention:
    """Each word reads its head in a dependency tree over all words (Kim et al. 2017, section 3.2).

        weights[d, h] = p(h is the head of d), or the other way round with read="children"

    The queries are the words themselves, one for each place in memory. `key_size` is the width of
    what is scored, where that is not the values themselves.
    """
    readers: dict[str, AbstractReader] = {
        "heads": ExpectedHeadReader(value_size),
        "children": ExpectedChildReader(),
    }
    if read not in readers:
        raise ValueRangeError(
            f"syntactic_attention: read must be one of {sorted(readers)}, got {read!r}. "
            f"Pass read='heads' for the soft head of each word."
        )
    tree = ProjectiveTree if projective else SpanningTree
    return Attention(
        scorer=ArcScorer(
            query_size, value_size if key_size is None else key_size, hidden_size, bounded=bounded
        ),
        distribute=per_memory(partial(tree, single_root=single_root)),
        reader=readers[read],
    )


def head_selection_attention(
    query_size: int,
    value_size: int,
    hidden_size: int,
    *,
    key_size: int | None = None,
    bounded: bool = False,
) -> Attention:
    """Each word reads its head, which it chooses by itself (Zhang et al. 2017): syntactic attention
    without the tree, with the same scores, and so what a tree has to be better than.

        weights[d, h] = softmax over h of arcs[h, d],  h another word or the root
    """
    return Attention(
        scorer=ArcScorer(
            query_size, value_size if key_size is None else key_size, hidden_size, bounded=bounded
        ),
        distribute=head_selection,
        reader=SelectedHeadReader(value_size),
    )


def local_attention(
    query_size: int,
    value_size: int,
    scorer: AbstractScorer | None = None,
    *,
    window: float = 10.0,
) -> Attention:
    """Softmax around a place that the query predicts (Luong et al. 2015, section 3.2, local-p)."""
    inner = _scorer(scorer, query_size, value_size)
    return Attention(
        scorer=LocalScorer(inner, query_size),
        distribute=local_window(window),
        reader=ExpectedValue(),
    )


def monotone_attention(
    query_size: int, value_size: int, scorer: AbstractScorer | None = None
) -> Attention:
    """All queries are aligned to the places in order: each is given one place, never an earlier one
    than the query before it (Raffel et al. 2017; exact, by the lattice of Wu & Cotterell 2019).

        weights[q, s] = p(query q is given place s)

    The weights of a query depend on the queries after it as well: for whole sequences, not for a
    decoder that has yet to choose its next word.
    """
    return Attention(
        scorer=_scorer(scorer, query_size, value_size),
        distribute=monotone_alignment,
        reader=AlignedValue(),
    )


def sparsemax_attention(
    query_size: int, value_size: int, scorer: AbstractScorer | None = None
) -> Attention:
    """One place is read, and most have weight exactly 0 (Martins & Astudillo 2016)."""
    return Attention(
        scorer=_scorer(scorer, query_size, value_size),
        distribute=per_query(Sparsemax),
        reader=ExpectedValue(),
    )


def spatial_attention(
    query_size: int, value_size: int, scorer: AbstractScorer | None = None
) -> Attention:
    """Softmax over the cells of an image grid (Xu et al. 2015, section 4.2); the memory is made by
    `grid_memory`, and a trace keeps its height and width.
    """
    return softmax_attention(query_size, value_size, scorer)
