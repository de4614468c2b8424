"""Monotone alignments in Foveal and in other libraries.

Grids have no peer on the CPU: torch-struct's `AlignmentCRF` needs genbmm, which has only CUDA operations.
`ctc_log_partition` is compared with torch's CTC loss; the operation `loss` is the log-likelihood of the labels
and its gradient in the log-probabilities. Torch's gradient includes the gradient of the softmax before
it, one more subtraction.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import ctc_loss

from foveal.distributions import Alignment
from foveal.inference import ctc_log_partition

from .cases import SEED, US, Call, Case, Side, Size, case_of, without_gradient

_NUM_SYMBOLS = 40


def alignments(size: Size) -> Case:
    """Moves (B, S+1, T+1, 3) of N(0, 1), marginals of the moves."""
    batch, num_source, num_target = size
    torch.manual_seed(SEED)
    moves = torch.randn(batch, num_source + 1, num_target + 1, 3)
    weights = torch.randn_like(moves)
    return case_of({US: Side(make=Alignment, potentials=(moves,), weights=weights)})


def ctc(size: Size) -> Case:
    """Log-probabilities (B, frames, tokens) and labels (B, labels), all of full length."""
    batch, num_frames, num_labels = size
    torch.manual_seed(SEED)
    log_probs = torch.randn(batch, num_frames, _NUM_SYMBOLS).log_softmax(-1)
    targets = torch.randint(1, _NUM_SYMBOLS, (batch, num_labels))
    sizes = torch.full((batch,), num_frames), torch.full((batch,), num_labels)

    def ours(scores: Tensor = log_probs) -> Tensor:
        return -ctc_log_partition(scores, targets).sum()

    def theirs(scores: Tensor = log_probs) -> Tensor:
        return ctc_loss(scores.transpose(0, 1), targets, *sizes, reduction="sum")

    def step(loss: Callable[[Tensor], Tensor]) -> Call:
        def run() -> tuple[Tensor, ...]:
            leaf = log_probs.detach().requires_grad_()
            return torch.autograd.grad(loss(leaf), leaf)

        return run

    return Case(
        operations={
            "log_partition": {US: without_gradient(ours), "torch": without_gradient(theirs)},
            "loss": {US: step(ours), "torch": step(theirs)},
        }
    )
