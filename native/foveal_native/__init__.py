"""C++ kernels for foveal, registered as the ops `torch.ops.foveal_native.*`.

Importing this package registers the ops, with the shape functions that torch.compile and torch.export need.
`instruction_set()` returns the kernels that this CPU runs: "avx512", "avx2" or "baseline".
"""

import torch as torch  # its libraries must be loaded before the kernels

from . import (
    _fakes as _fakes,
    _search_fakes as _search_fakes,
    _semi_markov_fakes as _semi_markov_fakes,
)
from ._kernels import (
    instruction_set as instruction_set,
    multiplies_in_half_precision as multiplies_in_half_precision,
)
