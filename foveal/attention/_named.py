"""Named attentions: each is a choice of scorer, distribution and reader.

Axes: *batch any leading shape, Q queries, S positions, D width of a query, V width of a value.
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
from .history._shift import ShiftScorer, shifted


def _scorer(scorer: AbstractScorer | None, query_size: int, value_size: int) -> AbstractScorer:
    """Return the given scorer, or an additive scorer with the width of the query."""
    return scorer or AdditiveScorer(query_size, value_size, hidden_size=query_size)


def softmax_attention(
    query_size: int, value_size: int, scorer: AbstractScorer | None = None
) -> Attention:
    """Read one position: weights = softmax(scores) (Bahdanau et al. 2015, eq. 5 and 6).

    Args:
        query_size: Width of a query.
        value_size: Width of a value.
        scorer: Scores the positions; by default, `AdditiveScorer` with `query_size` hidden units.

    Returns:
        An attention for any number of queries.

    Examples:
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
    """Read each position independently: weights = sigmoid(scores) (Kim et al. 2017, section 4.2).

    Args:
        query_size: Width of a query.
        value_size: Width of a value.
        scorer: Scores the positions; by default, `AdditiveScorer` with `query_size` hidden units.

    Returns:
        An attention for any number of queries.
    """
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
    """Read segments of neighboring positions (Kim et al. 2017, section 3.1).

    The distribution is a chain with the states "skip" and "read" and learned transitions.

        weights[s] = p(z_s = read), or scaled to `total` (the paper's lambda = 2)

    On a grid, segments end at the end of a row.

    Args:
        query_size: Width of a query.
        value_size: Width of a value.
        scorer: Scores the positions; by default, `AdditiveScorer` with `query_size` hidden units.
        total: Sum of the weights of each query. By default, the weights are the marginals.

    Returns:
        An attention for any number of queries, each with its own chain.
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
    """Read at most one cell in each column of a grid.

    The distribution is a chain over columns whose states are "skip" and the rows, with learned scores
    for skipping, staying in a row and leaving it.

        weights[r, c] = p(column c is read in row r), scaled to `total`

    Args:
        query_size: Width of a query.
        value_size: Width of a value.
        scorer: Scores the cells; by default, `AdditiveScorer` with `query_size` hidden units.
        total: Sum of the weights of each query. With `None`, the weights are the marginals.

    Returns:
        An attention for any number of queries, each with its own path.
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
    """Read one fact at each step, where each step depends on the previous one (Kim et al. 2017, section 4.3).

    Query k is step k of a chain over facts.

        weights[k, s] = p(step k reads s)

    Args:
        query_size: Width of a query.
        value_size: Width of a value.
        scorer: Scores the facts; by default, `AdditiveScorer` with `query_size` hidden units.
        repeat: Whether two consecutive steps may read the same fact.

    Returns:
        An attention whose queries are the steps, in order.
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
    """Read the head of each word in a dependency tree over all words (Kim et al. 2017, section 3.2).

        weights[d, h] = p(h is the head of d), or transposed with read="children"

    The queries are the words, one for each position in memory.

    Args:
        query_size: Width of a query.
        value_size: Width of a value.
        hidden_size: Width of the hidden layer that scores an arc.
        key_size: Width of the scored vectors, if these are not the values; defaults to `value_size`.
        projective: Whether arcs must not cross; if False, the tree can be any spanning tree.
        single_root: Whether exactly one word is the child of the root.
        bounded: Whether to bound the scores by tanh, as the paper's code does.
        read: "heads" for the expected head of each word, "children" for the sum of its expected children.

    Returns:
        An attention for one query per word.

    Raises:
        ValueRangeError: `read` is neither "heads" nor "children".
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
    """Read the head that each word selects independently (Zhang et al. 2017).

    It has the same scores as syntactic attention but no tree constraint: the baseline for a tree.

        weights[d, h] = softmax over h of arcs[h, d],  h another word or the root

    Args:
        query_size: Width of a query.
        value_size: Width of a value.
        hidden_size: Width of the hidden layer that scores an arc.
        key_size: Width of the scored vectors, if these are not the values; defaults to `value_size`.
        bounded: Whether to bound the scores by tanh.

    Returns:
        An attention for one query per word.
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
    """Apply softmax around a position that the query predicts (Luong et al. 2015, section 3.2, local-p).

    Args:
        query_size: Width of a query.
        value_size: Width of a value.
        scorer: Scores the positions; by default, `AdditiveScorer` with `query_size` hidden units.
        window: Half-width of the window in positions: two standard deviations of the Gaussian.

    Returns:
        An attention for any number of queries.
    """
    inner = _scorer(scorer, query_size, value_size)
    return Attention(
        scorer=LocalScorer(inner, query_size),
        distribute=local_window(window),
        reader=ExpectedValue(),
    )


def shift_attention(
    query_size: int,
    value_size: int,
    scorer: AbstractScorer | None = None,
    *,
    most: int = 1,
) -> Attention:
    """Move from the weights of the previous step (location addressing of Graves et al. 2014).

    Each step mixes the previous weights with weights by content, moves them along the positions, and sharpens them.
    A decoder passes the previous weights, and the first step moves from the first position.

    Args:
        query_size: Width of a query.
        value_size: Width of a value.
        scorer: Scores the positions by content; by default, `AdditiveScorer` with `query_size` hidden units.
        most: Number of positions that one step can move, in both directions.

    Returns:
        An attention for the steps of a decoder.
    """
    inner = _scorer(scorer, query_size, value_size)
    return Attention(
        scorer=ShiftScorer(inner, query_size, most), distribute=shifted(), reader=ExpectedValue()
    )


def monotone_attention(
    query_size: int, value_size: int, scorer: AbstractScorer | None = None
) -> Attention:
    """Align all queries to positions in order (Raffel et al. 2017).

    Each query gets one position, which is never before the position of the previous query. The marginals
    are exact, by the lattice of Wu & Cotterell 2019.

        weights[q, s] = p(query q is aligned to position s)

    The weights of a query also depend on later queries. Use it for whole sequences, not in a decoder that
    generates one token at a time.

    Args:
        query_size: Width of a query.
        value_size: Width of a value.
        scorer: Scores the positions; by default, `AdditiveScorer` with `query_size` hidden units.

    Returns:
        An attention that takes all queries of a sequence in one call.
    """
    return Attention(
        scorer=_scorer(scorer, query_size, value_size),
        distribute=monotone_alignment,
        reader=AlignedValue(),
    )


def sparsemax_attention(
    query_size: int, value_size: int, scorer: AbstractScorer | None = None
) -> Attention:
    """Read one position with sparse weights: most are exactly 0 (Martins & Astudillo 2016).

    Args:
        query_size: Width of a query.
        value_size: Width of a value.
        scorer: Scores the positions; by default, `AdditiveScorer` with `query_size` hidden units.

    Returns:
        An attention for any number of queries.
    """
    return Attention(
        scorer=_scorer(scorer, query_size, value_size),
        distribute=per_query(Sparsemax),
        reader=ExpectedValue(),
    )


def spatial_attention(
    query_size: int, value_size: int, scorer: AbstractScorer | None = None
) -> Attention:
    """Apply softmax to the cells of an image grid (Xu et al. 2015, section 4.2).

    Build the memory with `grid_memory`; a trace keeps its height and width.

    Args:
        query_size: Width of a query.
        value_size: Width of the feature vector of a cell.
        scorer: Scores the cells; by default, `AdditiveScorer` with `query_size` hidden units.

    Returns:
        An attention for any number of queries.
    """
    return softmax_attention(query_size, value_size, scorer)
