"""Cases: the same operation on the same input, in Foveal and in each other library.

A family is one form of one structure with its sizes; a case is a family at one size, input drawn,
every operation a call without arguments for each library that has it. Operations, wherever the
structure and the peer have them:

    log_partition   no gradient
    marginals       no gradient, where the library can do without
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
    """One family at one size: operation -> library -> call. `left_out` says what is not run, why."""

    operations: Mapping[str, Mapping[str, Call]]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """One form of one structure.

    Attributes:
        structure: the structure's name in a row such as "chain train (32, 25, 2) vs torch-struct".
        form: which of its forms, to tell apart our own times.
        axes: what the numbers of a size mean.
        build: draws the input of a size and gives its case.
        sizes: the sizes to measure.
        peers: the distributions measured beside us.
        budget: seconds that a library may take over one operation at one size.
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
        """Structure and form."""
        return f"{self.structure} {self.form}"


class Model(Protocol):
    """What a library answers: our distributions do, and adapters make the peers do."""

    def log_partition(self) -> Tensor:
        """One number for each structure of the batch."""
        ...

    def marginals(self) -> Tensor:
        """Probabilities of the parts; differentiable."""
        ...

    def argmax(self) -> object:
        """Return the best structures, in the format of the library."""
        ...

    def sample(self, sample_shape: tuple[int, ...]) -> Tensor:
        """Drawn structures."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One library's side of a case.

    Attributes:
        make: its distribution, from potentials.
        potentials: the case's input in the layout of the library, so that no conversion is timed.
        weights: the case's linear loss, in the layout of the library's marginals.
        lacks: operations that the library does not have.
    """

    make: Callable[..., Model]
    potentials: tuple[Tensor, ...]
    weights: Tensor
    lacks: tuple[str, ...] = ()

    def model(self) -> Model:
        """The distribution, made anew: libraries keep what they have computed."""
        return self.make(*(potential.detach() for potential in self.potentials))

    def train(self) -> tuple[Tensor, ...]:
        """Marginals, a linear loss of them, its gradient in the potentials."""
        leaves = tuple(potential.detach().requires_grad_() for potential in self.potentials)
        return torch.autograd.grad((self.make(*leaves).marginals() * self.weights).sum(), leaves)


def case_of(sides: Mapping[str, Side]) -> Case:
    """Every operation on every side that has it."""
    operations: dict[str, dict[str, Call]] = {
        "log_partition": {
            name: without_gradient(lambda side=side: side.model().log_partition())
            for name, side in sides.items()
        },
        "marginals": {
            # a peer whose marginals are a gradient asks for its gradient itself
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
    """The same call, recording nothing."""

    def quiet() -> object:
        with torch.no_grad():
            return call()

    return quiet
