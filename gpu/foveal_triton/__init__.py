"""Triton kernels for foveal, registered as the ops `torch.ops.foveal_triton.*`.

Importing this package registers the ops. They support CUDA tensors; if the environment variable
TRITON_INTERPRET is 1, they run on CPU tensors in Triton's interpreter, which is slow and useful for tests.
"""

from . import (
    _alignment_ops as _alignment_ops,
    _chain_ops as _chain_ops,
    _ctc_ops as _ctc_ops,
    _projective_ops as _projective_ops,
    _segment_ops as _segment_ops,
    _span_ops as _span_ops,
)
from ._launching import INTERPRETED as INTERPRETED
