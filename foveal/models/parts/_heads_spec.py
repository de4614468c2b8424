"""Heads of a Transformer with an attention of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ...errors import ValueRangeError
from ...specs import setting
from ._attention_specs import SelfAttentionSpec, SyntacticSpec


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class HeadsSpec:
    """Heads of a Transformer with an attention of their own, for example one syntactic head in the first layer."""

    attention: SelfAttentionSpec = setting(SyntacticSpec(), "attention of these heads")
    num_heads: int = setting(1, "number of these heads in a layer", at_least=1)
    layers: tuple[int, ...] | None = setting(
        None, "layers that have these heads, counted from 1; none: all layers", at_least=1
    )


def heads_of_layer(
    owner: str, layer: int, num_heads: int, special_heads: Sequence[HeadsSpec]
) -> tuple[list[HeadsSpec], int]:
    """Return the special heads of a layer, and the number of its other heads."""
    special = [each for each in special_heads if each.layers is None or layer in each.layers]
    rest = num_heads - sum(each.num_heads for each in special)
    if rest < 0:
        raise ValueRangeError(
            f"{owner}: layer {layer} has {num_heads} heads, got {num_heads - rest} special_heads. "
            f"Set num_heads higher, or remove special heads."
        )
    return special, rest


def check_layers(owner: str, num_layers: int, special_heads: Sequence[HeadsSpec]) -> None:
    """Raise an error if special heads are in a layer that does not exist."""
    named = {layer for each in special_heads for layer in each.layers or ()}
    if named and max(named) > num_layers:
        raise ValueRangeError(
            f"{owner}: special_heads must name layers from 1 to {num_layers}, got "
            f"{max(named)}. Change the layers of these heads, or num_layers."
        )
