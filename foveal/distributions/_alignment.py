r"""A monotone alignment of two sequences: a path through a grid.

    score(path) = sum over its moves of moves[i, j, m]

           j = 0   1   2       T = 2 target items
    i = 0    o---o---o
             | \ | \ |         \    match: source item i with target item j
    i = 1    o---o---o         |    skip source item i
             | \ | \ |         ---  skip target item j
    i = 2    o---o---o
             S = 2 source items

Node (i, j) means that i source items and j target items are consumed. A path leads from (0, 0) to
(S, T), and moves[i, j, m] scores the move m that enters node (i, j). Edit distance, soft dynamic time
warping, CTC and monotone attention are choices of the scores. Time and memory are O(S T), also when
training through the marginals.

Axes: *batch any leading shape, R = S + 1 rows and C = T + 1 columns of nodes, 3 moves; for CTC,
T frames, V symbols, L labels.
References: Needleman & Wunsch 1970; Graves et al. 2006 (CTC); Raffel et al. 2017 (monotone
attention).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad
from typing_extensions import override

from ..errors import ShapeError, ValueRangeError
from ..inference import alignment_best, alignment_log_partition, alignment_marginals
from ..inference.alignment._ctc_lattice import ctc_lattice
from ..inference.alignment._functions import alignment_sample
from ..shapes import flatten_batch, join_batch_shapes
from ._checks import check_mask, check_scores, checks_values, require_labels
from ._distribution import AbstractDistribution, expectation


@final
@dataclass(frozen=True, eq=False)
class Alignment(AbstractDistribution):
    """A path of moves; a value is boolean `(..., S+1, T+1, 3)`, True on the moves of the path.

    `moves[i, j, m]` scores the move that enters node (i, j), which means that i source items and j
    target items are consumed: m = 0 is a match from (i-1, j-1), m = 1 a skip of source item i from
    (i-1, j), m = 2 a skip of target item j from (i, j-1). Moves from outside the grid are ignored.

    A masked item is skipped at no cost: its row or column of nodes does not exist. If one side has no
    real item, the only path skips the other side.

    Args:
        moves: Score of the move that enters each node.
        source_mask: True on real source items, in any pattern; by default, all are real.
        target_mask: True on real target items, in any pattern; by default, all are real.

    Examples:
        >>> costs = torch.tensor([0.0, -1.0, -1.0]).expand(3, 4, 3)    # 2 source, 3 target items
        >>> path = Alignment(costs).argmax()
        >>> path[..., 0].sum(), path[..., 1].sum(), path[..., 2].sum()    # matches, skips of each side
        (tensor(2), tensor(0), tensor(1))
        >>> Alignment(torch.zeros(3, 4, 3)).log_partition().exp()    # a Delannoy number
        tensor(25.0000)
    """

    _is_boolean: ClassVar[bool] = True

    moves: Float[Tensor, "*#batch R C 3"]
    source_mask: Bool[Tensor, "*#batch R-1"] | None = None
    target_mask: Bool[Tensor, "*#batch C-1"] | None = None

    def __post_init__(self) -> None:
        check_scores("Alignment", "moves", self.moves, "S+1 T+1 3")
        if self.moves.shape[-1] != 3:
            raise ShapeError(
                f"Alignment: moves must have shape (..., S+1, T+1, 3), with three moves (match, "
                f"skip source, skip target) last, got {tuple(self.moves.shape)}. Forbid a move "
                f"that does not exist with -inf."
            )
        check_mask("Alignment.source_mask", self.source_mask, self.moves.shape[-3] - 1)
        check_mask("Alignment.target_mask", self.target_mask, self.moves.shape[-2] - 1)

    @classmethod
    def one_to_many(
        cls,
        scores: Float[Tensor, "*#batch S T"],
        *,
        source_mask: Bool[Tensor, "*#batch S"] | None = None,
        target_mask: Bool[Tensor, "*#batch T"] | None = None,
    ) -> "Alignment":
        """Align every target item to one source item, never before the source item of its predecessor.

            score = sum_j scores[a_j, j],   a_1 <= a_2 <= ... <= a_T

        This is the lattice of hard monotone attention. A path skips target items along the row of their
        source item, so p(a_j = i), the expected attention, is `marginals()[..., 1:, 1:, 2]`.

        Args:
            scores: Score of each source item for each target item.
            source_mask: True on real source items; by default, all are real.
            target_mask: True on real target items; by default, all are real.

        Returns:
            A distribution over the allowed paths.

        Raises:
            ShapeError: The scores have fewer than two axes or are not floating-point.

        Examples:
            >>> Alignment.one_to_many(torch.zeros(2, 3)).marginals()[1:, 1:, 2]
            tensor([[0.7500, 0.5000, 0.2500],
                    [0.2500, 0.5000, 0.7500]])
        """
        check_scores("Alignment.one_to_many", "scores", scores, "S T")
        chosen = pad(scores, (1, 0, 1, 0), value=-torch.inf)
        never, free = torch.full_like(chosen, -torch.inf), torch.zeros_like(chosen)
        return cls(torch.stack([never, free, chosen], -1), source_mask, target_mask)

    @classmethod
    def ctc(
        cls,
        log_probs: Float[Tensor, "*#batch T V"],
        targets: Int[Tensor, "*#batch L"],
        *,
        frame_mask: Bool[Tensor, "*#batch T"] | None = None,
        target_mask: Bool[Tensor, "*#batch L"] | None = None,
        blank: int = 0,
    ) -> "Alignment":
        """Build the CTC alignment: frames emit the labels, with repeats and blanks.

        `log_partition()` is the log-likelihood of the labels, the negative of
        `torch.nn.functional.ctc_loss`; `inference.ctc_log_partition` computes it faster. The source
        items are the T frames; the target items are the 2 L + 1 states blank, label, blank, ..., label,
        blank. A frame is emitted by the state that the path stays in (skip source) or leaves (match);
        the path leaves an optional blank without emission by a skip of target. With `m = marginals()`, the probability that state s emits
        frame t is therefore `m[..., 1:, :-1, 1] + m[..., 1:, 1:, 0]`.

        Args:
            log_probs: Log-probability of each symbol in each frame.
            targets: Labels, as indices of symbols other than the blank.
            frame_mask: True on real frames; by default, all are real.
            target_mask: True on real labels; by default, all are real.
            blank: Index of the blank.

        Returns:
            A distribution over the paths that spell the labels.

        Raises:
            ShapeError: The log-probabilities have fewer than two axes or are not floating-point.
            ValueRangeError: A target is the blank or is not a symbol.

        Examples:
            >>> even = torch.full((3, 2), 0.5).log()
            >>> Alignment.ctc(even, torch.tensor([1])).log_partition().exp()    # 6 of 8 spell it
            tensor(0.7500)
        """
        check_scores("Alignment.ctc", "log_probs", log_probs, "T V")
        _require_targets(targets, target_mask, log_probs.shape[-1], blank)
        lattice = ctc_lattice(log_probs, targets, target_mask, blank)
        return cls(lattice.moves, frame_mask, None if target_mask is None else lattice.real)

    @property
    @override
    def batch_shape(self) -> torch.Size:
        shapes = {"moves": self.moves.shape[:-3]}
        for name in ("source_mask", "target_mask"):
            side = self.__dict__[name]
            if side is not None:
                shapes[name] = side.shape[:-1]
        return join_batch_shapes("Alignment", **shapes)

    def _flat(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Flatten the potentials to one leading axis, as `inference` expects."""
        batch = self.batch_shape
        source, target = (
            None if side is None else flatten_batch(side, batch, 1)
            for side in (self.source_mask, self.target_mask)
        )
        return flatten_batch(self.moves, batch, 3), source, target

    @override
    def log_partition(self) -> Float[Tensor, "*batch"]:
        return alignment_log_partition(*self._flat()).reshape(self.batch_shape)

    @override
    def marginals(self) -> Float[Tensor, "*batch R C 3"]:
        """Compute p(the path has a move), 0 on padding; differentiable."""
        return alignment_marginals(*self._flat()).reshape(*self.batch_shape, *self.moves.shape[-3:])

    @override
    def _best(self, k: int) -> tuple[Tensor, Tensor]:
        """Find the k best paths (k, *batch, S+1, T+1, 3) and their scores (k, *batch)."""
        shape = (k, *self.batch_shape)
        found = alignment_best(*self._flat(), k=k)
        return found.paths.reshape(*shape, *self.moves.shape[-3:]), found.scores.reshape(shape)

    @override
    def _draw(self, num_samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        drawn = alignment_sample(*self._flat(), num_samples=num_samples, generator=generator)
        paths = drawn.paths.reshape(num_samples, *self.batch_shape, *self.moves.shape[-3:])
        return paths, drawn.possible.reshape(self.batch_shape)

    def _real(self) -> tuple[Bool[Tensor, "... R"], Bool[Tensor, "... C"]]:
        """Return masks of the rows and columns of nodes: the first, and one for each real item."""
        sides = []
        sizes = self.moves.shape[-3:-1]
        for side, size in zip((self.source_mask, self.target_mask), sizes, strict=True):
            every = torch.ones(size - 1, dtype=torch.bool, device=self.moves.device)
            sides.append(pad(every if side is None else side, (1, 0), value=True))
        return sides[0], sides[1]

    @override
    def _value_shape(self) -> tuple[int, ...]:
        return tuple(self.moves.shape[-3:])

    def _on_real(self, value: Bool[Tensor, "... R C 3"]) -> Bool[Tensor, "... R C 3"]:
        """Select the moves into existing nodes."""
        rows, columns = self._real()
        return value & rows[..., :, None, None] & columns[..., None, :, None]

    @override
    def _require_structures(self, value: Bool[Tensor, "... R C 3"]) -> None:
        _require_paths(self._on_real(value), *self._real())

    @override
    def _score(self, value: Bool[Tensor, "... R C 3"]) -> Float[Tensor, "..."]:
        value = self._on_real(value)
        return torch.where(value, self.moves.to(self._dtype()), 0.0).sum((-3, -2, -1))

    @override
    def _expected_score(self, other: Any) -> Float[Tensor, "*batch"]:
        return expectation(self.marginals(), other.moves, 3)


def _require_targets(
    targets: Tensor, target_mask: Tensor | None, num_symbols: int, blank: int
) -> None:
    """Raise if a target is the blank or is not a symbol (not checked while compiling)."""
    real = torch.ones_like(targets, dtype=torch.bool) if target_mask is None else target_mask
    targets, real = torch.broadcast_tensors(targets, real)
    require_labels("Alignment.ctc", targets, real, num_symbols)
    if checks_values() and bool((real & (targets == blank)).any()):
        raise ValueRangeError(
            f"Alignment.ctc: targets must not hold the blank, got {blank} at index "
            f"{(real & (targets == blank)).nonzero()[0].tolist()}. Pass blank= the symbol that "
            f"stands for no label, or mask the padding of targets."
        )


def _require_paths(
    value: Bool[Tensor, "... R C 3"], rows: Bool[Tensor, "... R"], columns: Bool[Tensor, "... C"]
) -> None:
    """Raise if the moves are not a path from the first to the last node.

    In a path, every other node has one move into it for each move out of it.
    """
    shape = value.shape[:-3]
    for side, axis in ((rows, -3), (columns, -2)):
        order = (~side).int().argsort(stable=True, dim=-1)  # real items first
        index = order.unsqueeze(-1).unsqueeze(-1) if axis == -3 else order[..., None, :, None]
        value = value.gather(axis, index.expand(value.shape))
    wide = pad(value.int(), (0, 0, 0, 1, 0, 1))
    left = wide[..., 1:, 1:, 0] + wide[..., 1:, :-1, 1] + wide[..., :-1, 1:, 2]
    entered = wide[..., :-1, :-1, :].sum(-1)
    row = torch.arange(rows.shape[-1], device=value.device).unsqueeze(-1)
    column = torch.arange(columns.shape[-1], device=value.device)
    last_row = rows.sum(-1)[..., None, None] - 1
    last_column = columns.sum(-1)[..., None, None] - 1
    ends = ((row == last_row) & (column == last_column)).int()
    starts = ((row == 0) & (column == 0)).int()
    broken = (entered + starts != left + ends).flatten(-2).any(-1).expand(shape)
    if bool(broken.any()):
        raise ValueRangeError(
            f"Alignment.score: expected moves that join up to one path from the first to the last "
            f"node, got others in {int(broken.sum())} of {broken.numel()} values, the first at "
            f"index {broken.nonzero()[0].tolist()}. See the moves in help(Alignment)."
        )
