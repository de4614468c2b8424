"""Adapters of other libraries to our axes: chains. For trees see `tree_peers`.

An adapter has the inputs and outputs of our distributions. Timings therefore compare equal work, and a
difference in value is a bug on one side. Inputs and outputs are views: an adapter costs its peer
microseconds. The peers are in a separate dependency group and are imported only on demand.

    torch-struct  edge potentials; a scan of depth log T that holds B * T/2 * K^3 numbers; for
                  segments B * T/2 * (D K)^3
    pytorch-crf   unary scores and shared transitions; no marginals, no sampling
"""

import importlib
import math
import os
from functools import cache
from typing import Any, final

import torch
from torch import Tensor

# Bytes that a torch-struct chain holds at its peak per number of the first level of its scan, as
# measured with benchmarks.memory (rounded up); sampling unfolds 16 draws into int64 one-hots.
_TORCH_STRUCT_BYTES = {
    "log_partition": 12,
    "marginals": 34,
    "train": 46,
    "argmax": 10,
    "sample": 224,
}


class PeerMissingError(ImportError):
    """A library to compare with is not installed."""


def load_peer(module: str, package: str) -> Any:
    """Import a peer, or say how to install it.

    The module is untyped, hence Any.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise PeerMissingError(
            f"The benchmark needs {package}, which is not installed. Peers are a dependency group "
            f"of their own: pip install -c constraints.txt --group peers"
        ) from error


@final
class TorchStructChain:
    """torch-struct's `LinearChainCRF` on edges (B, T-1, K, K), edges[b, t, i, j] from i to j.

    torch-struct expects [next, previous]: the adapter swaps the last two axes of inputs and outputs.
    """

    def __init__(self, edges: Tensor) -> None:
        self._chain = torch_struct_class("LinearChainCRF")(edges.transpose(-1, -2))

    def log_partition(self) -> Tensor:
        """The log-partition, (B,)."""
        return self._chain.partition

    def pair_marginals(self) -> Tensor:
        """Marginals of the edges, (B, T-1, K, K); differentiable."""
        return self._chain.marginals.transpose(-1, -2)

    def argmax(self) -> Tensor:
        """The best labels as edge indicators, (B, T-1, K, K).

        torch-struct's conversion to labels is a Python loop over all edges and is not timed.
        """
        return self._chain.argmax.transpose(-1, -2)

    def sample(self, count: int) -> Tensor:
        """Sampled edge indicators, (count, B, T-1, K, K).

        torch-struct draws in blocks of ten: ten samples cost the same as one.
        """
        return self._chain.sample((count,)).transpose(-1, -2)


@cache
def torch_struct_class(name: str) -> Any:
    """Return a class of torch-struct, with the declaration that current torch warns is missing."""
    module = load_peer("torch_struct", "torch-struct")
    return type(name, (getattr(module, name),), {"arg_constraints": {}})


class TorchStructModel:
    """A distribution of torch-struct with our method names, in the layout of torch-struct.

    Values are indicators in the shape of the potentials. torch-struct marks its input as requiring a
    gradient and computes marginals as a gradient, so it gets an alias, and gradients are enabled.
    """

    def __init__(self, name: str, potentials: Tensor, **options: bool | Tensor) -> None:
        self._model = torch_struct_class(name)(with_gradient(potentials), **options)

    def log_partition(self) -> Tensor:
        """The log-partition, (B,)."""
        return self._model.partition

    @torch.enable_grad()
    def marginals(self) -> Tensor:
        """Marginals in the shape of the potentials; differentiable."""
        return self._model.marginals

    def argmax(self) -> Tensor:
        """Indicators of the best structure."""
        return self._model.argmax

    def sample(self, sample_shape: tuple[int, ...]) -> Tensor:
        """Indicators of samples. torch-struct draws in blocks of ten: ten cost the same as one."""
        return self._model.sample(sample_shape)


def with_gradient(potentials: Tensor) -> Tensor:
    """Return the potentials, or an alias that requires a gradient if they do not."""
    return potentials if potentials.requires_grad else potentials.detach().requires_grad_()


@final
class TorchStructSegments(TorchStructModel):
    """torch-struct's `SemiMarkovCRF` on the edges of `segments_as_edges`."""

    def __init__(self, edges: Tensor) -> None:
        super().__init__("SemiMarkovCRF", edges)


def segments_as_edges(segments: Tensor, transitions: Tensor, *, forbidden: float = -1e5) -> Tensor:
    """Combine segments (B, T, D, K) and transitions (B, T-1, K, K) into the single tensor of torch-struct.

    Its edges (B, T, D+1, K, K) at [t, d, j, i] score a segment of label i that starts at t, has d
    positions (d = 0 is unused) and is followed by label j. torch-struct expects one more label after the
    last segment, which is 0 here. `forbidden` is the score of impossible edges and defaults to torch-struct's.
    """
    batch, length, num_lengths, labels = segments.shape
    edges = segments.new_full((batch, length, num_lengths + 1, labels, labels), forbidden)
    for size in range(1, min(num_lengths, length) + 1):
        own = segments[:, : length - size + 1, size - 1].unsqueeze(-2)
        edges[:, : length - size, size] = own[:, :-1] + transitions[:, size - 1 :].transpose(-1, -2)
        edges[:, length - size, size, 0] = own[:, -1, 0]
    return edges


def torch_struct_fits(operation: str, size: tuple[int, int, int]) -> bool:
    """Return whether a torch-struct chain of size (B, T, K) fits into four fifths of the memory.

    Args:
        operation: the operation; names of sampling operations start with "sample".
        size: batch, length, states.
    """
    batch, length, states = size
    scan = batch * 2 ** math.ceil(math.log2(max(length - 1, 1))) / 2 * states**3
    needed = scan * _TORCH_STRUCT_BYTES[operation.split(maxsplit=1)[0]]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return needed <= 0.8 * memory


@final
class PytorchCrfChain:
    """pytorch-crf's `CRF` with the given transitions (K, K) and no start or end scores.

    `transitions` is the parameter of the model and gets gradients. The recursion is a private method, which
    the loss of pytorch-crf calls; marginals are its gradient, as users of pytorch-crf compute them.
    """

    def __init__(self, transitions: Tensor) -> None:
        module = load_peer("torchcrf", "pytorch-crf")
        self._crf = module.CRF(transitions.shape[-1], batch_first=True).to(transitions.dtype)
        with torch.no_grad():
            self._crf.transitions.copy_(transitions)
            for absent in (self._crf.start_transitions, self._crf.end_transitions):
                absent.zero_().requires_grad_(False)
        self.transitions: Tensor = self._crf.transitions

    def log_partition(self, unary: Tensor) -> Tensor:
        """The log-partition, (B,), from unary scores (B, T, K)."""
        emissions = unary.transpose(0, 1)
        return self._crf._compute_normalizer(emissions, _everywhere(emissions))

    def marginals(self, unary: Tensor, *, differentiable: bool = True) -> Tensor:
        """Marginals of the labels, (B, T, K); `unary` must require its gradient."""
        log_partition = self.log_partition(unary).sum()
        return torch.autograd.grad(log_partition, unary, create_graph=differentiable)[0]

    def argmax(self, unary: Tensor) -> list[list[int]]:
        """The best labels, a list per sequence."""
        return self._crf.decode(unary, _everywhere(unary))


def _everywhere(scores: Tensor) -> Tensor:
    """Return a mask of all positions. It is boolean because pytorch-crf's default makes torch warn."""
    return torch.ones(scores.shape[:2], dtype=torch.bool)
