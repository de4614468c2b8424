"""Cases: the same operation on the same input, in Foveal and in each other library.

A family is one form of one structure with its sizes. A case is a family at one size with its input drawn;
it has a call without arguments for every operation and every library that supports it. The operations are:

    log_partition   no gradient
    marginals       no gradient, if the library can compute them without
    train           marginals, a random linear loss of them, its gradient in the potentials
    argmax          the best structure
    sample          one draw;  sample x10: ten draws in one call
    loss            of CTC: the log-likelihood and its gradient in the log-probabilities

A new structure is a function that builds its case, and one line in FAMILIES (see `families`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

Size: TypeAlias = tuple[int, ...]
Call: TypeAlias = Callable[[], object]

US = "foveal"
SEED = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One family at one size: operation -> library -> call. `left_out` has the reasons for skipped calls."""

    operations: Mapping[str, Mapping[str, Call]]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """One form of one structure.

    Attributes:
        structure: the structure's name in a row such as "chain train (32, 25, 2) vs torch-struct".
        form: the form of the structure, which distinguishes our own times.
        axes: the meaning of the numbers of a size.
        build: draws the input of a size and returns its case.
        sizes: the sizes to measure.
        peers: the packages compared with Foveal.
        budget: the most seconds for one library, operation and size.
    """

    structure: str
    form: str
    axes: str
    build: Callable[[Size], Case]
    sizes: tuple[Size, ...]
    peers: tuple[str, ...]
    budget: float = 10.0

    @property
    def name(self) -> str:
        """Return the structure and the form."""
        return f"{self.structure} {self.form}"


class Model(Protocol):
    """The common interface of our distributions and of the adapters of the other libraries."""

    def log_partition(self) -> Tensor:
        """Return one number for each batch item."""
        ...

    def marginals(self) -> Tensor:
        """Return the probabilities of the parts; differentiable."""
        ...

    def argmax(self) -> object:
        """Return the best structures, in the format of the library."""
        ...

    def sample(self, sample_shape: tuple[int, ...]) -> Tensor:
        """Draw structures."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One library's side of a case.

    Attributes:
        make: builds the library's distribution from potentials.
        potentials: the case's input in the layout of the library; no conversion is timed.
        weights: the case's linear loss, in the layout of the library's marginals.
        lacks: operations that the library does not have.
    """

    make: Callable[..., Model]
    potentials: tuple[Tensor, ...]
    weights: Tensor
    lacks: tuple[str, ...] = ()

    def model(self) -> Model:
        """Build a new distribution for every call, because libraries cache their results."""
        return self.make(*(potential.detach() for potential in self.potentials))

    def train(self) -> tuple[Tensor, ...]:
        """Compute the marginals, a linear loss of them, and its gradient in the potentials."""
        leaves = tuple(potential.detach().requires_grad_() for potential in self.potentials)
        return torch.autograd.grad((self.make(*leaves).marginals() * self.weights).sum(), leaves)


def case_of(sides: Mapping[str, Side]) -> Case:
    """Return a case with every operation on every side that supports it."""
    operations: dict[str, dict[str, Call]] = {
        "log_partition": {
            name: without_gradient(lambda side=side: side.model().log_partition())
            for name, side in sides.items()
        },
        "marginals": {
            # a peer whose marginals are a gradient enables gradients in its adapter
            name: without_gradient(lambda side=side: side.model().marginals())
            for name, side in sides.items()
        },
        "train": {name: side.train for name, side in sides.items()},
        "argmax": {name: lambda side=side: side.model().argmax() for name, side in sides.items()},
        "sample": {
            name: lambda side=side: side.model().sample((1,)) for name, side in sides.items()
        },
    }
    return Case(
        operations={
            operation: {
                name: call for name, call in calls.items() if operation not in sides[name].lacks
            }
            for operation, calls in operations.items()
        }
    )


def without_gradient(call: Call) -> Call:
    """Wrap a call in `torch.no_grad`."""

    def quiet() -> object:
        with torch.no_grad():
            return call()

    return quiet
