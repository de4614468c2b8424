"""How a question is answered from facts in K steps.

    soft    u_1 = q,   o_k = softmax(u_k . x) over the facts' values,   u_{k+1} = H u_k + o_k
    chain   z_1 .. z_K ~ a chain over facts: score of fact i at step k = (Q_k q) . x_i, of i followed
            by j = x_i W x_j;   u = q + O [E c_{z_1}; ...; E c_{z_K}]

The steps of "soft" are K softmaxes, one after the other, each of which knows what the one before
has read. Those of "chain" are one distribution over sequences of facts, and its best sequence is
one question to it.

References: Sukhbaatar et al. 2015, section 2.2 (layer-wise); Kim et al. 2017, section 4.3.

Axes: B items of a batch, K steps, n facts, D width of a fact and of a question.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import override

from ..attention import Attended, Attention, DotScorer, ExpectedValue, Memory, softmax_attention
from ..attention._distribute import chain_over_steps
from ..attention._structured_scorers import StepScorer
from ..batch_invariant import Linear
from ..specs import setting


class Stepwise(NamedTuple):
    """What the steps came to, and what each has read: K readings of one query, or one of K."""

    vector: Float[Tensor, "B D"]
    attended: tuple[Attended, ...]


class AbstractSteps(nn.Module, ABC):
    """A question and facts in, a vector out. The keys say which fact is read, the values what is."""

    @abstractmethod
    def forward(
        self, question: Float[Tensor, "B D"], keys: Memory, values: Float[Tensor, "B n D"]
    ) -> Stepwise:
        """Read the facts."""


@final
class SoftSteps(AbstractSteps):
    """K softmaxes, one after the other."""

    def __init__(self, size: int, num_steps: int) -> None:
        super().__init__()
        self.num_steps = num_steps
        self.attention = softmax_attention(size, size, DotScorer())
        self.carry = Linear(size, size, bias=False)

    @override
    def forward(self, question: Tensor, keys: Memory, values: Tensor) -> Stepwise:
        memory = self.attention.remember(keys)._replace(values=values)
        vector, attended = question, []
        for _ in range(self.num_steps):
            read = self.attention(vector.unsqueeze(-2), memory)
            vector = self.carry(vector) + read.context.squeeze(-2)
            attended.append(read)
        return Stepwise(vector, tuple(attended))


@final
class ChainSteps(AbstractSteps):
    """One chain over the facts."""

    def __init__(self, size: int, num_steps: int, *, repeat: bool) -> None:
        super().__init__()
        self.num_steps = num_steps
        scorer = StepScorer(DotScorer(), size, repeat=repeat)
        self.attention = Attention(
            scorer=scorer, distribute=chain_over_steps, reader=ExpectedValue()
        )
        self.queries = Linear(size, num_steps * size, bias=False)
        self.join = Linear(num_steps * size, size, bias=False)
        # Identities: before anything is learned, a fact is read that shares words with the question,
        # and is followed by one that shares words with it. From random maps a chain finds neither.
        with torch.no_grad():
            scorer.follow.weight.copy_(torch.eye(size))
            self.queries.weight.copy_(torch.eye(size).repeat(num_steps, 1))
            self.join.weight.copy_(torch.eye(size).repeat(1, num_steps))

    @override
    def forward(self, question: Tensor, keys: Memory, values: Tensor) -> Stepwise:
        memory = self.attention.remember(keys)._replace(values=values)
        queries = self.queries(question).unflatten(-1, (self.num_steps, -1))
        read = self.attention(queries, memory)
        return Stepwise(question + self.join(read.context.flatten(-2)), (read,))


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SoftStepsSpec:
    """K softmaxes, one after the other (Sukhbaatar et al. 2015)."""

    kind: Literal["soft"] = "soft"

    def build(self, size: int, num_steps: int) -> SoftSteps:
        """The steps."""
        return SoftSteps(size, num_steps)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ChainStepsSpec:
    """One chain over the facts (Kim et al. 2017)."""

    kind: Literal["chain"] = "chain"
    repeat: bool = setting(False, "let two steps in a row read the same fact")

    def build(self, size: int, num_steps: int) -> ChainSteps:
        """The steps."""
        return ChainSteps(size, num_steps, repeat=self.repeat)


StepsSpec = SoftStepsSpec | ChainStepsSpec
