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
from ._distribute import per_query
from ._memory import Memory
from ._readers import ExpectedValue
from ._scorers import DotScorer


def attended_to(
    attention: Attention,
    query: Float[Tensor, "*batch Q D"],
    keys: Float[Tensor, "*batch S D"],
    values: Float[Tensor, "*batch S V"],
    mask: Bool[Tensor, "*#batch S"] | None,
) -> Attended:
    """Attend to values that are scored by other vectors, the keys."""
    remembered = attention.remember(Memory(keys, mask))
    return attention(query, remembered._replace(values=values))


def context_of(
    attention: Attention,
    query: Float[Tensor, "*batch Q D"],
    keys: Float[Tensor, "*batch S D"],
    values: Float[Tensor, "*batch S V"],
    mask: Bool[Tensor, "*#batch S"] | None,
) -> Float[Tensor, "*batch Q V"]:
    """Return the context of `attended_to`, by the fused kernel if there is one."""
    scale = _dot_product_scale(attention)
    if scale is None:
        return attended_to(attention, query, keys, values, mask).context
    allowed = None if mask is None else mask.unsqueeze(-2)
    return scaled_dot_product_attention(query, keys, values, attn_mask=allowed, scale=scale)


def _dot_product_scale(attention: Attention) -> float | None:
    """Return the factor of the dot products under the softmax; None for any other attention."""
    scorer, reader = attention.scorer, attention.reader
    is_softmax = attention.distribute == per_query(Categorical)
    if is_softmax and isinstance(scorer, DotScorer) and isinstance(reader, ExpectedValue):
        return scorer.scale
    return None
