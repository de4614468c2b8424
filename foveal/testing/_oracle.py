"""Brute-force enumeration: all structures in a list, and every operation as a sum over the list.

The scores are differentiable functions of the potentials, so autograd through the sum gives the true marginals and the
true gradients through them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

# Maps the potentials and the mask of one item to all of its structures and their scores. A score is the sum of the
# entries that the structure reads, so entries that no structure reads get no gradient.
Enumerate = Callable[..., Iterable[tuple[Tensor, Tensor]]]


class Listed(NamedTuple):
    """The possible structures of one item and their scores."""

    values: list[Tensor]
    scores: Tensor  # (number of structures,), finite

    def log_partition(self) -> Tensor:
        return self.scores.logsumexp(0) if self.values else self.scores.new_tensor(-torch.inf)

    def probabilities(self) -> Tensor:
        return self.scores.softmax(0)

    def stacked(self) -> Tensor:
        """Return the structures as values of a batch of one item: (number, 1, *event)."""
        return torch.stack(self.values).unsqueeze(1)

    def place(self, value: Tensor) -> int:
        """Return the index of a value in the list; raise AssertionError if it is not a possible structure."""
        for i, listed in enumerate(self.values):
            if torch.equal(listed, value):
                return i
        raise AssertionError(f"not a possible structure: {value.tolist()}")


def list_structures(
    structures: Enumerate, potentials: Sequence[Tensor], mask: Tensor | None
) -> list[Listed]:
    """List every structure of every batch item."""
    listed = []
    for item in range(len(potentials[0])):
        item_mask = None if mask is None else mask[item]
        found = [
            (value, score)
            for value, score in structures(*(part[item] for part in potentials), item_mask)
            if score.item() > -torch.inf
        ]
        scores = [score for _, score in found]
        empty = potentials[0].new_empty(0)
        listed.append(
            Listed([value for value, _ in found], torch.stack(scores) if scores else empty)
        )
    return listed


class Truth(NamedTuple):
    """Results of the enumeration of a batch."""

    log_partition: Tensor  # (B,)
    marginals: Tensor  # like the first potential
    through: tuple[Tensor, ...]  # gradient of sum(marginals * direction) in each potential


def truth(
    structures: Enumerate, potentials: Sequence[Tensor], mask: Tensor | None, direction: Tensor
) -> Truth:
    """Compute the log-partition, the marginals, and the gradient through the marginals by autograd."""
    leaves = [part.detach().clone().requires_grad_() for part in potentials]
    listed = list_structures(structures, leaves, mask)
    log_partition = torch.stack([item.log_partition() for item in listed])
    if not log_partition.requires_grad:  # no item has a structure
        zeros = tuple(torch.zeros_like(part) for part in leaves)
        return Truth(log_partition, zeros[0], zeros)
    (marginals,) = torch.autograd.grad(
        log_partition.sum(), leaves[:1], create_graph=True, materialize_grads=True
    )
    loss = (marginals * direction).sum()
    if loss.requires_grad:
        through = torch.autograd.grad(loss, leaves, materialize_grads=True)
    else:
        through = tuple(torch.zeros_like(part) for part in leaves)
    return Truth(log_partition.detach(), marginals.detach(), through)


def unread(
    structures: Enumerate, potentials: Sequence[Tensor], mask: Tensor | None
) -> list[Tensor]:
    """Return True for the entries of each potential that no structure reads: padding and unused parts of the layout."""
    leaves = [torch.zeros_like(part).requires_grad_() for part in potentials]
    total = torch.zeros(())
    for item in list_structures(structures, leaves, mask):
        total = total + item.scores.sum()
    if not total.requires_grad:
        return [torch.ones_like(part, dtype=torch.bool) for part in potentials]
    return [grad == 0 for grad in torch.autograd.grad(total, leaves, materialize_grads=True)]
