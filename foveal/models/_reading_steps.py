"""Attention to facts in K steps to answer a question.

    soft    u_1 = q,   o_k = softmax(u_k . x) over the facts' values,   u_{k+1} = H u_k + o_k
    chain   z_1 .. z_K ~ a chain over facts: score of fact i at step k = (Q_k q) . x_i, of i followed
            by j = x_i W x_j;   u = q + O [E c_{z_1}; ...; E c_{z_K}]

    adjacent    each step k has its own keys x^k and values c^k, and c^k and x^{k+1} share a table
    soft        u_{k+1} = u_k + o_k
    chain       score of i followed by j at step k + 1 = c_i^k . x_j^{k+1};   u = q + sum_k E c^k_{z_k}

"soft" applies K softmaxes in sequence, each of which depends on the result of the previous one. "chain" is
one distribution over sequences of facts, so it can return the best sequence directly.

References: Sukhbaatar et al. 2015, section 2.2 (adjacent and layer-wise); Kim et al. 2017, section 4.3.

Axes: B items of a batch, K steps, n facts, D width of a fact and of a question.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
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
    """The result of the steps, and their attention: K with one query each, or one with K queries."""

    vector: Float[Tensor, "B D"]
    attended: tuple[Attended, ...]


class AbstractSteps(nn.Module, ABC):
    """Maps a question and facts to a vector; the keys decide which facts are read, the values are the content.

    Every step has its own keys and values. They are the same for all steps if the tying is layer-wise.
    """

    @abstractmethod
    def forward(
        self,
        question: Float[Tensor, "B D"],
        keys: Sequence[Memory],
        values: Sequence[Float[Tensor, "B n D"]],
    ) -> Stepwise:
        """Attend to the facts.

        Args:
            question: Vector of each question.
            keys: For each step, the memory that decides which facts are read.
            values: For each step, the content of the facts.

        Returns:
            The vector of the answer and the attention of the steps.
        """


@final
class SoftSteps(AbstractSteps):
    """Applies K softmaxes in sequence.

    Args:
        size: Width of a fact and of a question.
        carry: Multiply the vector by a learned matrix in every step; False: by 1.
    """

    def __init__(self, size: int, *, carry: bool = True) -> None:
        super().__init__()
        self.attention = softmax_attention(size, size, DotScorer())
        self.carry = Linear(size, size, bias=False) if carry else nn.Identity()

    @override
    def forward(
        self, question: Tensor, keys: Sequence[Memory], values: Sequence[Tensor]
    ) -> Stepwise:
        vector, attended = question, []
        for key, value in zip(keys, values, strict=True):
            memory = self.attention.remember(key)._replace(values=value)
            read = self.attention(vector.unsqueeze(-2), memory)
            vector = self.carry(vector) + read.context.squeeze(-2)
            attended.append(read)
        return Stepwise(vector, tuple(attended))


@final
class ChainSteps(AbstractSteps):
    """Applies one chain over the facts, with the same keys and values in all steps."""

    def __init__(self, size: int, num_steps: int, *, repeat: bool) -> None:
        super().__init__()
        self.num_steps = num_steps
        scorer = StepScorer(DotScorer(), size, repeat=repeat)
        self.attention = Attention(
            scorer=scorer, distribute=chain_over_steps, reader=ExpectedValue()
        )
        self.queries = Linear(size, num_steps * size, bias=False)
        self.join = Linear(num_steps * size, size, bias=False)
        # Identities: without training, the chain reads a fact that shares words with the question, followed
        # by a fact that shares words with the first fact. With random maps a chain learns neither.
        with torch.no_grad():
            scorer.follow.weight.copy_(torch.eye(size))
            self.queries.weight.copy_(torch.eye(size).repeat(num_steps, 1))
            self.join.weight.copy_(torch.eye(size).repeat(1, num_steps))

    @override
    def forward(
        self, question: Tensor, keys: Sequence[Memory], values: Sequence[Tensor]
    ) -> Stepwise:
        memory = self.attention.remember(keys[0])._replace(values=values[0])
        queries = self.queries(question).unflatten(-1, (self.num_steps, -1))
        read = self.attention(queries, memory)
        return Stepwise(question + self.join(read.context.flatten(-2)), (read,))


@final
class AdjacentChainSteps(AbstractSteps):
    """Applies one chain over the facts, with separate keys and values in each step."""

    def __init__(self, size: int, num_steps: int, *, repeat: bool) -> None:
        super().__init__()
        self.num_steps, self.repeat = num_steps, repeat
        self.queries = Linear(size, num_steps * size, bias=False)
        with torch.no_grad():
            self.queries.weight.copy_(torch.eye(size).repeat(num_steps, 1))

    @override
    def forward(
        self, question: Tensor, keys: Sequence[Memory], values: Sequence[Tensor]
    ) -> Stepwise:
        memory = keys[0]
        queries = self.queries(question).unflatten(-1, (self.num_steps, -1))
        places = torch.stack([key.cleared("AdjacentChainSteps").values for key in keys], -3)
        content = torch.stack(list(values), -3)
        unary = (places @ queries.unsqueeze(-1)).squeeze(-1)
        # The values of a step and the keys of the next have one table: the score counts shared words from the start.
        pairs = content[..., :-1, :, :] @ places[..., 1:, :, :].transpose(-1, -2)
        if not self.repeat:
            same = torch.eye(pairs.shape[-1], dtype=torch.bool, device=pairs.device)
            pairs = pairs.masked_fill(same, -torch.inf)
        chain = chain_over_steps((unary, pairs), memory)
        weights = chain.marginals()
        context = (weights.unsqueeze(-2) @ content).squeeze(-2)
        return Stepwise(question + context.sum(-2), (Attended(context, weights, chain),))


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SoftStepsSpec:
    """K softmaxes in sequence (Sukhbaatar et al. 2015)."""

    kind: Literal["soft"] = "soft"

    def build(self, size: int, num_steps: int, *, adjacent: bool = False) -> SoftSteps:
        """Build the steps.

        Args:
            size: Width of a fact and of a question.
            num_steps: Number of softmaxes.
            adjacent: Every step has its own keys and values.

        Returns:
            Steps with new weights.
        """
        return SoftSteps(size, carry=not adjacent)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ChainStepsSpec:
    """One chain over the facts (Kim et al. 2017)."""

    kind: Literal["chain"] = "chain"
    repeat: bool = setting(False, "let two steps in a row read the same fact")

    def build(self, size: int, num_steps: int, *, adjacent: bool = False) -> AbstractSteps:
        """Build the steps.

        Args:
            size: Width of a fact and of a question.
            num_steps: Number of facts in the chain.
            adjacent: Every step has its own keys and values.

        Returns:
            Steps whose weights start as identities.
        """
        if adjacent:
            return AdjacentChainSteps(size, num_steps, repeat=self.repeat)
        return ChainSteps(size, num_steps, repeat=self.repeat)


StepsSpec = SoftStepsSpec | ChainStepsSpec
