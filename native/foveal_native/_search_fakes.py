"""The output shapes and dtypes of the ops of search, for tensors without data.

The size of packed weights depends on the CPU, so only the CPU packs them.
"""

from torch import Tensor

from ._registration import register


@register("foveal_native::search_product")
def _search_product(
    rows: Tensor, packed: Tensor, bias: Tensor | None, columns: int, half: bool
) -> Tensor:
    return rows.new_empty(rows.shape[0], columns)


@register("foveal_native::search_step")
def _search_step(
    scores: Tensor,
    tokens: Tensor | None,
    of_item: Tensor | None,
    hidden: Tensor,
    memory: Tensor,
    packed: Tensor,
    half: bool,
) -> tuple[Tensor, Tensor]:
    return hidden.new_empty(hidden.shape), hidden.new_empty(hidden.shape)


@register("foveal_native::search_sequence")
def _search_sequence(
    scores: Tensor,
    tokens: Tensor | None,
    lengths: Tensor,
    packed: Tensor,
    backward: bool,
    half: bool,
    units: int,
    offset: int,
    outputs: Tensor,
) -> None:
    return None


@register("foveal_native::search_attend")
def _search_attend(
    products: Tensor, keys: Tensor, weight: Tensor, values: Tensor, shut: Tensor | None
) -> tuple[Tensor, Tensor]:
    batch, each, _ = products.shape
    _, positions, width = values.shape
    return products.new_empty(batch, each, width), products.new_empty(batch, each, positions)


@register("foveal_native::search_decode")
def _search_decode(
    table: Tensor,
    tokens: Tensor,
    of_item: Tensor | None,
    hidden: Tensor,
    memory: Tensor,
    of_state: Tensor,
    of_hidden: Tensor,
    keys: Tensor,
    weight: Tensor,
    values: Tensor,
    shut: Tensor | None,
    output: Tensor,
    bias: Tensor,
    half: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch, each, _ = hidden.shape
    return (
        hidden.new_empty(hidden.shape),
        hidden.new_empty(hidden.shape),
        hidden.new_empty(batch, each, values.shape[1]),
        hidden.new_empty(batch, each, bias.shape[0]),
    )
