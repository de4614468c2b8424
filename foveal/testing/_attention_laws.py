"""Laws of scorers, readers and attentions.

Axes: B batch, Q queries, S positions, D width of a query, V width of a value.
"""

from typing import Any

import torch
from torch import Tensor, nn

from ..attention import AbstractReader, AbstractScorer, Memory
from ..attention._scorers import potentials_of
from ..distributions import AbstractDistribution
from ..distributions._sparse import AbstractSparseDistribution
from ._module_laws import (
    JUNK_NUMBERS,
    assert_near,
    assert_same_gradients,
    check_reach,
    check_undisturbed,
    gradients,
    junk_in,
    masks,
)

_BATCH = 5  # differs from every event size, so a batch axis cannot be confused with an event axis


def check_scorer(
    scorer: AbstractScorer,
    query_size: int,
    value_size: int,
    *,
    num_queries: int = 3,
    num_places: int = 4,
) -> None:
    """Check the laws of a scorer: shapes, batching, any leading shape, gradients, and independent requests.

    Args:
        scorer: Scorer to check.
        query_size: Width of the queries.
        value_size: Width of the values that the scorer remembers.
        num_queries: Number of queries of an item.
        num_places: Number of positions of an item.

    Examples:
        >>> from foveal.attention import BilinearScorer
        >>> check_scorer(BilinearScorer(3, 4), query_size=3, value_size=4)
    """
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(_BATCH, num_queries, query_size, generator=generator)
    values = torch.randn(_BATCH, num_places, value_size, generator=generator)

    def scores(q: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        return potentials_of(scorer, q, scorer.remember(v))

    whole = scores(query, values)
    assert isinstance(whole, tuple), f"a scorer returns a tensor or a tuple, got {type(whole)}"
    for part in whole:
        assert not part.isnan().any(), "a score is not a number"
    shaped = scores(query[:, None], values[:, None])
    alone = [scores(query[item], values[item]) for item in range(_BATCH)]
    for number, part in enumerate(whole):
        batched = part.shape[0] == _BATCH
        for item in range(_BATCH):
            one = part[item] if batched else part
            assert_near(alone[item][number], one, "one item alone and in a batch")
        assert_near(
            shaped[number][:, 0] if batched else shaped[number], part, "with two leading axes"
        )
    check_reach(scorer, _total(scores(query, values)))
    check_undisturbed(
        scorer,
        lambda: scores(query, values)[0],
        lambda: scores(query + 1, values[:, :num_places] * 2)[0],
    )


def check_reader(
    reader: AbstractReader,
    distribution: AbstractDistribution | AbstractSparseDistribution,
    *,
    num_places: int,
    value_size: int | None = None,
) -> None:
    """Check the laws of a reader: shapes, linearity of the expectation, gradients, and independent requests.

    Args:
        reader: Reader to check.
        distribution: Distribution to read with; it has one batch axis.
        num_places: Number of positions that the distribution covers.
        value_size: Width of the values; 3 by default.

    Examples:
        >>> from foveal.attention import ExpectedValue
        >>> from foveal.distributions import Categorical
        >>> check_reader(ExpectedValue(), Categorical(torch.randn(2, 3, 4)), num_places=4)
    """
    generator = torch.Generator().manual_seed(0)
    width, batch = value_size or 3, distribution.batch_shape[0]
    one, other = torch.randn(2, batch, num_places, width, generator=generator)
    reader.eval()
    read = reader(distribution, one)
    assert read.context.shape == (*read.weights.shape[:-1], width), "the shape of the context"
    assert read.weights.shape[-1] == num_places, "there is one weight for each place"
    mixed = reader(distribution, 0.3 * one + 0.7 * other).context
    expected = 0.3 * read.context + 0.7 * reader(distribution, other).context
    assert_near(mixed, expected, "an expectation is linear in the values")
    live = one.clone().requires_grad_()
    context = reader(distribution, live).context
    (gradient,) = torch.autograd.grad(_total((context,)), live, retain_graph=True)
    assert gradient.any(), "no gradient reaches the values"
    check_reach(reader, _total((context,)))
    check_undisturbed(
        reader,
        lambda: reader(distribution, one).context,
        lambda: reader(distribution, other).context,
    )


def check_attention(
    attention: nn.Module,
    query_size: int,
    value_size: int,
    *,
    num_queries: int = 3,
    num_places: int = 4,
    empty: bool = True,
) -> None:
    """Check the laws of an attention: shapes, every mask pattern, arbitrary values in padding, batching, empty batches,
    gradients, and independent requests.

    Args:
        attention: The attention. It has `remember(memory)` and returns an `Attended` when called.
        query_size: Width of a query.
        value_size: Width of a value.
        num_queries: The number of queries. For self-attention, it must equal `num_places`.
        num_places: Size of the memory.
        empty: Whether a memory may be all padding.

    Examples:
        >>> from foveal.attention import sigmoid_attention
        >>> check_attention(sigmoid_attention(3, 4), query_size=3, value_size=4)
    """
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(_BATCH, num_queries, query_size, generator=generator)
    values = torch.randn(_BATCH, num_places, value_size, generator=generator)
    attention.eval()

    def attend(q: Tensor, v: Tensor, mask: Tensor | None = None) -> Any:
        memory: Any = attention
        return attention(q, memory.remember(Memory(v, mask)))

    every = attend(query, values)
    assert every.context.shape == (_BATCH, num_queries, value_size), "the shape of the context"
    assert every.weights.shape[-2:] == (num_queries, num_places), "the shape of the weights"
    full = attend(query, values, torch.ones(_BATCH, num_places, dtype=torch.bool))
    assert_near(full.context, every.context, "no mask, and one that is all True")
    shaped = attend(query[:, None], values[:, None])
    assert_near(shaped.context[:, 0], every.context, "with two leading axes")
    for pattern, mask in masks((_BATCH, num_places)).items():
        count = _BATCH if empty else _BATCH - 1
        _check_masked(attention, attend, query[:count], values[:count], mask[:count], pattern)
    _check_empty_batch(attend, query, values)
    check_reach(attention, _total((attend(query, values).context,)))
    check_undisturbed(
        attention,
        lambda: attend(query, values).context,
        lambda: attend(query + 1, values * 2).context,
    )


def _check_empty_batch(attend: Any, query: Tensor, values: Tensor) -> None:
    """Check that an empty batch gives an empty context, with and without gradients."""
    for wanted in (True, False):
        with torch.set_grad_enabled(wanted):
            context = attend(query[:0], values[:0]).context
            assert context.shape == (0, *query.shape[1:-1], values.shape[-1]), "an empty batch"
            context = attend(query[None, :0], values[None, :0]).context
            assert context.shape[:2] == (1, 0), "an empty batch with two leading axes"


def _check_masked(
    attention: nn.Module, attend: Any, query: Tensor, values: Tensor, mask: Tensor, pattern: str
) -> None:
    """Check that padding has no weight and that its values change neither the context nor the gradients of values and
    parameters, bit for bit.
    """
    read = attend(query, values, mask)
    assert read.context.isfinite().all(), f"{pattern}: the context is not finite"
    for item in range(len(mask)):
        padded = read.weights[item][..., ~mask[item]]
        assert not padded.any(), f"{pattern}: padding has been given a weight"
        alone = attend(query[item], values[item], mask[item])
        assert_near(alone.context, read.context[item], f"{pattern}: an item alone and in a batch")
        _check_cut(attend, query[item], values[item], mask[item], read.context[item], pattern)
    live = values.clone().requires_grad_()
    clean = gradients(attention, _total((attend(query, live, mask).context,)), live)
    assert not clean["inputs"][~mask].any(), f"{pattern}: a gradient reaches padding"
    real = mask.unsqueeze(-1)
    places = query.shape[1] == values.shape[1]  # self-attention
    queries = junk_in(query, real) if places else [query] * len(JUNK_NUMBERS)
    for ask, dirty in zip(queries, junk_in(values, real), strict=True):
        live = dirty.requires_grad_()
        junk = attend(ask, live, mask)
        assert torch.equal(junk.context, read.context), f"{pattern}: junk in padding is read"
        found = gradients(attention, _total((junk.context,)), live)
        assert_same_gradients(found, clean, f"{pattern}: junk in padding")


def _check_cut(
    attend: Any, query: Tensor, values: Tensor, mask: Tensor, context: Tensor, pattern: str
) -> None:
    """Check that an item gives the same result with and without its padding."""
    if mask.any():
        places = len(query) == len(values)  # self-attention
        real = mask if places else torch.ones(len(query), dtype=torch.bool)
        cut = attend(query[real], values[mask]).context
        assert_near(cut, context[real], f"{pattern}: without padding")


def _total(parts: tuple[Tensor, ...]) -> Tensor:
    """Return a scalar that depends on every finite entry with a different weight."""
    total = torch.zeros(())
    for part in parts:
        weights = torch.linspace(-1, 2, part.numel()).reshape(part.shape).sin()
        total = total + torch.where(part.isfinite(), part * weights, 0.0).sum()
    return total
