"""Adapters of other libraries: trees of arcs and of spans.

Each library has a different layout. A function converts the scores before anything is timed, and the adapter
computes in that layout.

    torch-struct  roots on the diagonal; a label on every span; no argmax or sample of its
                  matrix-tree distribution
    supar         words before heads; spans between fence posts; its sampling fails on a tuple that
                  its logsumexp returns, and it has none of matrix-tree
"""

import warnings
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import pad
from typing_extensions import override

from .peers import TorchStructModel, with_gradient
from .supar import load_supar


def root_on_diagonal(arcs: Tensor) -> Tensor:
    """Convert our arcs (B, n+1, n+1) to torch-struct's layout (B, n, n); [i, i] is the root to i."""
    return torch.diagonal_scatter(arcs[:, 1:, 1:], arcs[:, 0, 1:], dim1=-2, dim2=-1)


def word_first(arcs: Tensor) -> Tensor:
    """Convert our arcs to supar's layout: [word, head]."""
    return arcs.transpose(-1, -2).contiguous()


def one_label(spans: Tensor) -> Tensor:
    """Convert our spans (B, n, n) to torch-struct's layout (B, n, n, 1)."""
    return spans.unsqueeze(-1)


def between_fence_posts(spans: Tensor) -> Tensor:
    """Convert our spans (B, n, n) to supar's layout (B, n+1, n+1): the words i..j at [i, j+1]."""
    return pad(spans, (1, 0, 0, 1))


def torch_struct_projective(scores: Tensor) -> TorchStructModel:
    """`DependencyCRF` with any number of roots."""
    return TorchStructModel("DependencyCRF", scores, multiroot=True)


@final
class TorchStructSpanning(TorchStructModel):
    """`NonProjectiveDependencyCRF` with any number of roots. Marginals need no gradient."""

    def __init__(self, scores: Tensor) -> None:
        super().__init__("NonProjectiveDependencyCRF", scores, multiroot=True)

    @override
    def marginals(self) -> Tensor:
        return self._model.marginals


def torch_struct_spans(scores: Tensor) -> TorchStructModel:
    """`TreeCRF`."""
    return TorchStructModel("TreeCRF", scores)


@final
class SuparModel:
    """A distribution of supar with our method names, in the layout of supar.

    supar marks its input as requiring a gradient, computes marginals as a gradient, and overwrites its scores
    in the search for the best spanning tree.
    """

    def __init__(self, name: str, scores: Tensor, **options: bool) -> None:
        self._make = getattr(load_supar(), name)
        self._scores = with_gradient(scores)
        self._options = options

    def log_partition(self) -> Tensor:
        """The log-partition, (B,)."""
        return self._make(self._scores, **self._options).log_partition

    @torch.enable_grad()
    def marginals(self) -> Tensor:
        """Marginals in the shape of the scores; differentiable."""
        return self._make(self._scores, **self._options).marginals

    def argmax(self) -> Tensor | list[list[list[int]]]:
        """The best structures: heads (B, n+1), the root's is 0, or a list of spans each."""
        model = self._make(self._scores.detach().clone(), **self._options)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Using a non-tuple sequence", UserWarning)
            return model.argmax

    def sample(self, sample_shape: tuple[int, ...]) -> Tensor:
        """Fail, because supar cannot sample; see the top of this file."""
        raise NotImplementedError


def supar_projective(scores: Tensor) -> SuparModel:
    """`DependencyCRF` with any number of roots."""
    return SuparModel("DependencyCRF", scores, multiroot=True)


def supar_spanning(scores: Tensor) -> SuparModel:
    """`MatrixTree` with any number of roots."""
    return SuparModel("MatrixTree", scores, multiroot=True)


def supar_spans(scores: Tensor) -> SuparModel:
    """`ConstituencyCRF`."""
    return SuparModel("ConstituencyCRF", scores)
