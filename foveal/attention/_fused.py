"""Attention without weights: torch's fused kernel for a softmax over dot products.

    context = softmax( scale q k^T ) v

The kernel never stores the weights, which take most of the memory and time of a long text. Other attentions
compute their weights as usual.

Axes: *batch any leading shape, Q queries, S positions, D width of a query and of a key, V of a value.
"""

from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from ..distributions import Categorical
from ._attention import Attended, Attention
from ._distribute import PerQuery, per_query
from ._grids import PerQueryOnGrid
from ._memory import SEQUENCE, Layout, Memory
from ._readers import ExpectedValue
from ._scorers import DotScorer, potentials_of


def remembered(
    attention: Attention,
    keys: Float[Tensor, "*batch S D"],
    values: Float[Tensor, "*batch S V"],
    mask: Bool[Tensor, "*#batch S"] | None,
    layout: Layout = SEQUENCE,
) -> Memory:
    """Return a memory for `attended_to` and `context_of`: values that are scored by other vectors, the keys.

    The fused kernel takes the keys unchanged. For any other attention, the memory holds the keys of its scorer.
    """
    if _dot_product_scale(attention) is not None:
        return Memory(values, mask, layout=layout, keys=keys)
    return attention.remember(Memory(keys, mask, layout=layout))._replace(values=values)


def attended_to(
    attention: Attention,
    query: Float[Tensor, "*batch Q D"],
    memory: Memory,
    allowed: Bool[Tensor, "*#batch Q S"] | None = None,
) -> Attended:
    """Attend to a memory from `remembered`, with weights and distribution.

    `allowed` is True where a query may read a position. It takes the place of the mask of the memory and needs
    independent queries.
    """
    if _dot_product_scale(attention) is not None:
        scored = attention.remember(memory._replace(values=memory.keys))
        memory = scored._replace(values=memory.values)
    if allowed is None:
        return attention(query, memory)
    assert isinstance(attention.distribute, PerQuery | PerQueryOnGrid)
    allowed = allowed.expand(*query.shape[:-1], -1)
    potentials = potentials_of(attention.scorer, query, memory.keys)
    distribution = attention.distribute.among(potentials, allowed, memory.layout)
    context, weights = attention.reader(distribution, memory.values)
    return Attended(context, weights, distribution)


def context_of(
    attention: Attention,
    query: Float[Tensor, "*batch Q D"],
    memory: Memory,
    allowed: Bool[Tensor, "*#batch Q S"] | None = None,
) -> Float[Tensor, "*batch Q V"]:
    """Return the context of `attended_to`, by the fused kernel if there is one."""
    scale = _dot_product_scale(attention)
    if scale is None:
        return attended_to(attention, query, memory, allowed).context
    if allowed is None and memory.mask is not None:
        allowed = memory.mask.unsqueeze(-2)
    return scaled_dot_product_attention(
        query, memory.keys, memory.values, attn_mask=allowed, scale=scale
    )


def _dot_product_scale(attention: Attention) -> float | None:
    """Return the factor of the dot products under the softmax; None for any other attention."""
    scorer, reader = attention.scorer, attention.reader
    is_softmax = attention.distribute == per_query(Categorical)
    if is_softmax and isinstance(scorer, DotScorer) and isinstance(reader, ExpectedValue):
        return scorer.scale
    return None
