"""The C++ kernels of search in `foveal-native`, if they are installed and support the weights.

They keep a matrix in blocks, and a step of an LSTM or of additive attention is a single call. A sum adds in an
order that depends only on the width of the matrix, so the result for a row is bit-identical for every batch size.
Rows of hypotheses that continue the same hypothesis are equal, and are multiplied once.
"""

from importlib import import_module
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from ...inference import _native

# Gates are arranged in groups of so many hidden units, as in native/src/search_kernels.h.
_UNITS = 16


def serves(weight: Tensor, *, half: bool) -> bool:
    """Return whether the kernels multiply with these weights; half precision needs a CPU with AMX."""
    if not _native._IN_USE or not weight.is_cpu or weight.dtype != torch.float32:
        return False
    if not hasattr(torch.ops.foveal_native, "search_pack"):  # kernels of an earlier version
        return False
    return not half or import_module("foveal_native").multiplies_in_half_precision()


@final
class Packed:
    """A matrix in the order of its use by the kernels.

    Args:
        weight: Matrix W.
        half: Multiply in bfloat16.
    """

    def __init__(self, weight: Float[Tensor, "D G"], *, half: bool) -> None:
        self.columns, self.half = weight.shape[1], half
        self.blocks = torch.ops.foveal_native.search_pack(weight.detach().contiguous(), half)

    def times(
        self, rows: Float[Tensor, "N D"], bias: Float[Tensor, " G"] | None = None
    ) -> Float[Tensor, "N G"]:
        """Compute bias + rows W, as a new tensor."""
        return torch.ops.foveal_native.search_product(
            rows, self.blocks, bias, self.columns, self.half
        )


def by_unit(gates: list[Float[Tensor, "H *rest"]]) -> Float[Tensor, "G *rest"]:
    """Arrange the input, forget, output and new gates in groups of units, padded to whole groups."""
    together = torch.stack(gates)
    missing = -len(gates[0]) % _UNITS
    if missing:
        padding = together.new_zeros(len(together), missing, *together.shape[2:])
        together = torch.cat([together, padding], 1)
    return together.unflatten(1, (-1, _UNITS)).transpose(0, 1).flatten(0, 2)
