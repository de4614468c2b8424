"""The laws of the kernels, checked on a device: every result, compared with the reference passes in float64 on
the CPU, and the same bits in every repetition.

Scores are N(0, 1); "masked" ones have holes, "forbidden" ones contain -inf, "wide" ones are U(-50, 50).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from foveal.distributions import Alignment, LinearChain, SemiMarkov
from foveal.inference import (
    _native,
    _triton,
    ctc_log_partition,
    ctc_marginals,
    semi_markov_marginals,
)

from ..cases import SEED
from ..results import Row
from .cases import Size

KINDS = ("ordinary", "masked", "forbidden", "wide")
# The accuracy that the library promises for float32, and that of float64.
TOLERANCES = {
    torch.float32: {"log_partition": 1e-6, "marginals": 1e-5, "gradient": 3e-5, "argmax": 1e-6},
    torch.float64: dict.fromkeys(("log_partition", "marginals", "gradient", "argmax"), 1e-9),
}
NUM_SAMPLES, REPETITIONS = 500, 20
# Five standard deviations of a frequency.
SAMPLE_ERROR = 5 * (0.25 / NUM_SAMPLES) ** 0.5
SYMBOLS = 6


@contextmanager
def without_kernels() -> Iterator[None]:
    """Use the reference passes inside."""
    before = _native._IN_USE, _triton._IN_USE
    _native._IN_USE = _triton._IN_USE = False
    try:
        yield
    finally:
        _native._IN_USE, _triton._IN_USE = before


@dataclass(frozen=True)
class Problem:
    """Inputs on the CPU in float32: potentials with a gradient, and masks."""

    name: str
    leaves: tuple[Tensor, ...]
    rest: tuple[Tensor, ...]  # labels and masks

    def on(self, device: torch.device, dtype: torch.dtype) -> "Problem":
        """Move the inputs."""
        leaves = tuple(leaf.to(device, dtype, copy=True).requires_grad_() for leaf in self.leaves)
        return Problem(self.name, leaves, tuple(part.to(device) for part in self.rest))


Results = dict[str, tuple[Tensor, ...]]


@dataclass(frozen=True)
class Law:
    """The inputs of a family, its sums, and its distribution, if it has one."""

    problem: Callable[[Size, str], Problem]
    sums: Callable[[Problem], tuple[Tensor, tuple[Tensor, ...]]]
    make: Callable[[Problem], Any] | None
    counts: Callable[[Problem, Tensor], Tensor]  # of the parts of sampled structures


def _scores(generator: torch.Generator, kind: str, *shape: int) -> Tensor:
    if kind == "wide":
        return (torch.rand(shape, generator=generator) * 2 - 1) * 50
    return torch.randn(shape, generator=generator)


def _mask(generator: torch.Generator, kind: str, batch: int, length: int) -> Tensor:
    real = torch.rand(batch, length, generator=generator) < (0.8 if kind == "masked" else 1.0)
    return real | (torch.arange(length) == 0)


def chain_problem(size: Size, kind: str) -> Problem:
    """Draw (B, T, K); state 0 is never forbidden, so a labeling is possible."""
    batch, length, states = size
    generator = torch.Generator().manual_seed(SEED)
    unary = _scores(generator, kind, *size)
    transitions = _scores(generator, kind, batch, length - 1, states, states)
    if kind == "forbidden":
        drawn = torch.rand(transitions.shape, generator=generator) < 0.3
        drawn[..., 0] = drawn[..., 0, :] = False
        transitions = transitions.masked_fill(drawn, -torch.inf)
    return Problem("chain", (unary, transitions), (_mask(generator, kind, batch, length),))


def alignment_problem(size: Size, kind: str) -> Problem:
    """Draw (B, S, T); skips are never forbidden, so a path is possible."""
    batch, source, target = size
    generator = torch.Generator().manual_seed(SEED)
    moves = _scores(generator, kind, batch, source + 1, target + 1, 3)
    if kind == "forbidden":
        moves[..., 0].masked_fill_(
            torch.rand(moves.shape[:3], generator=generator) < 0.3, -torch.inf
        )
    masks = _mask(generator, kind, batch, source), _mask(generator, kind, batch, target)
    return Problem("alignment", (moves,), masks)


def ctc_problem(size: Size, kind: str) -> Problem:
    """Draw (B, T, L)."""
    batch, frames, labels = size
    generator = torch.Generator().manual_seed(SEED)
    log_probs = _scores(generator, kind, batch, frames, SYMBOLS).log_softmax(-1)
    if kind == "forbidden":
        log_probs[:, ::3, 1] = -torch.inf
    targets = torch.randint(1, SYMBOLS, (batch, labels), generator=generator)
    masks = _mask(generator, kind, batch, frames), _mask(generator, kind, batch, labels)
    return Problem("CTC", (log_probs,), (targets, *masks))


def segment_problem(size: Size, kind: str) -> Problem:
    """Draw (B, T, D, K); segments of one position are never forbidden, so a segmentation is possible."""
    batch, length, _, labels = size
    generator = torch.Generator().manual_seed(SEED)
    segments = _scores(generator, kind, *size)
    transitions = _scores(generator, kind, batch, length - 1, labels, labels)
    if kind == "forbidden":
        drawn = torch.rand(segments.shape, generator=generator) < 0.3
        drawn[:, :, 0] = False
        segments = segments.masked_fill(drawn, -torch.inf)
    mask = _mask(generator, kind, batch, length)
    return Problem("semi-Markov", (segments, transitions), (mask,))


def _chain(of: Problem) -> LinearChain:
    return LinearChain(*of.leaves, *of.rest)


def _alignment(of: Problem) -> Alignment:
    return Alignment(*of.leaves, *of.rest)


def _chain_sums(of: Problem) -> tuple[Tensor, tuple[Tensor, ...]]:
    distribution = _chain(of)
    return distribution.log_partition(), (distribution.marginals(), distribution.pair_marginals())


def _alignment_sums(of: Problem) -> tuple[Tensor, tuple[Tensor, ...]]:
    distribution = _alignment(of)
    return distribution.log_partition(), (distribution.marginals(),)


def _ctc_sums(of: Problem) -> tuple[Tensor, tuple[Tensor, ...]]:
    given = *of.leaves, *of.rest
    return ctc_log_partition(*given), (ctc_marginals(*(part.detach() for part in given)),)


def _segments(of: Problem) -> SemiMarkov:
    return SemiMarkov(*of.leaves, *of.rest)


def _segment_sums(of: Problem) -> tuple[Tensor, tuple[Tensor, ...]]:
    found = semi_markov_marginals(*of.leaves, *of.rest)
    return _segments(of).log_partition(), tuple(found)


def _labels(of: Problem, drawn: Tensor) -> Tensor:
    """Count the labels; those of padding are -1."""
    return one_hot(drawn + 1, of.leaves[0].shape[-1] + 1)[..., 1:].double()


def _moves(of: Problem, drawn: Tensor) -> Tensor:
    """Count the moves."""
    del of
    return drawn.double()


def _spans(of: Problem, drawn: Tensor) -> Tensor:
    """Count the segments by start, length and label."""
    return _segments(of).indicators(drawn).double()


LAWS = {
    "chain": Law(chain_problem, _chain_sums, _chain, _labels),
    "alignment": Law(alignment_problem, _alignment_sums, _alignment, _moves),
    "CTC": Law(ctc_problem, _ctc_sums, None, _moves),
    "semi-Markov": Law(segment_problem, _segment_sums, _segments, _spans),
}
SIZES: dict[str, tuple[Size, ...]] = {
    "chain": ((4, 1, 3), (3, 30, 2), (3, 25, 20), (2, 40, 50), (2, 300, 5), (1, 1000, 10)),
    "alignment": ((3, 1, 1), (3, 20, 33), (2, 150, 70)),
    "CTC": ((3, 1, 1), (3, 50, 10), (2, 300, 100)),
    "semi-Markov": (
        (4, 1, 1, 3),
        (3, 30, 5, 2),
        (3, 25, 20, 20),
        (2, 40, 64, 50),
        (1, 1000, 10, 10),
    ),
}


def sums(law: Law, of: Problem) -> Results:
    """Compute log Z, the marginals, and the gradient of a weighted sum of both."""
    log_partition, marginals = law.sums(of)
    parts = [log_partition, *(part for part in marginals if part.requires_grad)]
    total = torch.zeros((), dtype=log_partition.dtype, device=log_partition.device)
    for part in parts:
        generator = torch.Generator().manual_seed(SEED)
        weights = torch.randn(part.shape, generator=generator, dtype=torch.float64)
        weighted = part * weights.to(part.device, part.dtype)
        total = total + torch.where(part.isfinite(), weighted, 0.0).sum()
    gradient = torch.autograd.grad(total, of.leaves)
    return {"log_partition": (log_partition,), "marginals": marginals, "gradient": gradient}


def error(found: Sequence[Tensor], truth: Sequence[Tensor], *, relative: bool = False) -> float:
    """Return the largest difference; equal infinities have none, and NaN is infinite."""
    largest = 0.0
    for mine, true in zip(found, truth, strict=True):
        value, expected = (part.detach().cpu().double() for part in (mine, true))
        apart = torch.where(value == expected, 0.0, (value - expected).abs())
        if relative:
            apart = apart / expected.abs().clamp_min(1.0)
        largest = max(largest, apart.nan_to_num(torch.inf, torch.inf).max().item())
    return largest


def errors(
    law: Law, size: Size, kind: str, device: torch.device, dtype: torch.dtype
) -> Iterator[tuple[str, float, float]]:
    """Yield what was compared, its error, and the largest error that is allowed."""
    problem = law.problem(size, kind)
    given, wide = problem.on(device, dtype), problem.on(torch.device("cpu"), torch.float64)
    found = sums(law, given)
    with without_kernels():
        truth = sums(law, wide)
    allowed = TOLERANCES[dtype]
    for what, parts in truth.items():
        relative = what == "log_partition"
        yield what, error(found[what], parts, relative=relative), allowed[what]
    again = [sums(law, given) for _ in range(REPETITIONS)]
    differing = sum(
        not torch.equal(mine, first)
        for other in again
        for what, parts in found.items()
        for mine, first in zip(other[what], parts, strict=True)
    )
    yield "results with other bits in a repetition", float(differing), 0.0
    if law.make is None:
        return
    ours, true = law.make(given), law.make(wide)
    with torch.no_grad():
        best = ours.argmax().cpu()
        drawn = ours.sample((NUM_SAMPLES,)).cpu()
        with without_kernels():
            scores = true.log_prob(best), true.log_prob(true.argmax())
            usual = true.marginals()
    yield "argmax", error(scores[:1], scores[1:], relative=True), allowed["argmax"]
    yield "samples", error([law.counts(wide, drawn).mean(0)], [usual]), SAMPLE_ERROR


def law_rows(
    family: str, sizes: Sequence[Size], device: torch.device, dtypes: Sequence[torch.dtype]
) -> Iterator[Row]:
    """Yield one row for each comparison of a family."""
    for size in sizes:
        for kind in KINDS:
            for dtype in dtypes:
                title = f"{family} {size}, {kind}, {str(dtype).removeprefix('torch.')}"
                for what, value, most in errors(LAWS[family], size, kind, device, dtype):
                    yield Row(
                        name=f"{title}: {what}", value=value, unit="error", target=most, sense="<="
                    )
