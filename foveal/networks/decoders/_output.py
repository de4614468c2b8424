"""Output layer: from a vector to the log-probabilities of the next token.

    log p = log_softmax( W x + b )
    loss  = - (1 - e) log p[target] - e mean over w of log p[w]        label smoothing e

With tied weights, W is the table of token embeddings (Press and Wolf 2017; Inan et al. 2017). Label
smoothing: Szegedy et al. 2016, section 7. The output layer of a decoder that points has no weights: it predicts only the
end.

Axes: *batch any leading shape, D width of the vector, W tokens of the vocabulary.
"""

from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ...batch_invariant import linear
from ...errors import ShapeError
from ._token_loss import token_loss


class AbstractTokenOutput(nn.Module, ABC):
    """The output layer of a decoder."""

    bias: Tensor  # (W)

    def forward(
        self, vectors: Float[Tensor, "*batch D"], embedding: nn.Embedding
    ) -> Float[Tensor, "*batch W"]:
        """Compute log-probabilities of every token."""
        return linear(vectors, self.table(embedding), self.bias).log_softmax(-1)

    @abstractmethod
    def table(self, embedding: nn.Embedding) -> Float[Tensor, "W D"]:
        """Return the weights W."""

    @abstractmethod
    def score(
        self,
        vectors: Float[Tensor, "*batch D"],
        embedding: nn.Embedding,
        targets: Int[Tensor, "*batch"],
        mask: Bool[Tensor, "*batch"] | None = None,
        *,
        label_smoothing: float = 0.0,
    ) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        """Compute the loss of each target and its log-probability, both 0 on padding.

        The contents of vectors and targets on padding are ignored. Only the loss has a gradient.
        """


@final
class TokenOutput(AbstractTokenOutput):
    """The output layer of a decoder; with tied weights it has no table, so a saved model has the table once."""

    def __init__(self, size: int, embedding: nn.Embedding, *, tie_embeddings: bool = False) -> None:
        super().__init__()
        if tie_embeddings and size != embedding.embedding_dim:
            raise ShapeError(
                f"TokenOutput: tied embeddings need vectors of width {embedding.embedding_dim}, "
                f"got {size}. Make the embeddings as wide as the vector before the output, "
                f"or pass tie_embeddings=False."
            )
        bound = size**-0.5
        table = torch.empty(embedding.num_embeddings, size).uniform_(-bound, bound)
        self.weight = None if tie_embeddings else nn.Parameter(table)
        self.bias = nn.Parameter(torch.zeros(embedding.num_embeddings))

    @override
    def table(self, embedding: nn.Embedding) -> Float[Tensor, "W D"]:
        return embedding.weight if self.weight is None else self.weight

    @override
    def score(
        self,
        vectors: Float[Tensor, "*batch D"],
        embedding: nn.Embedding,
        targets: Int[Tensor, "*batch"],
        mask: Bool[Tensor, "*batch"] | None = None,
        *,
        label_smoothing: float = 0.0,
    ) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        weight = self.table(embedding)
        rows, aims = vectors.reshape(-1, vectors.shape[-1]), targets.flatten()
        if mask is None:
            found = token_loss(rows, weight, self.bias, aims, label_smoothing)
            loss, log_prob = (each.view(targets.shape) for each in found)
            return loss, log_prob
        # A GPU computes padding faster than the host learns the number of real rows.
        if not mask.is_cpu:
            hidden = ~mask.flatten()
            rows, aims = rows.masked_fill(hidden.unsqueeze(-1), 0), aims.masked_fill(hidden, 0)
            found = token_loss(rows, weight, self.bias, aims, label_smoothing)
            loss, log_prob = (each.masked_fill(hidden, 0).view(targets.shape) for each in found)
            return loss, log_prob
        real = mask.flatten().nonzero().squeeze(-1)
        rows, aims = rows.index_select(0, real), aims.index_select(0, real)
        found = token_loss(rows, weight, self.bias, aims, label_smoothing)
        loss, log_prob = (
            each.new_zeros(targets.numel()).index_copy(0, real, each).view(targets.shape)
            for each in found
        )
        return loss, log_prob


@final
class EndOutput(AbstractTokenOutput):
    """Predicts the end with probability 1: the output layer of a decoder whose other tokens are all copied.

    It has no weights; its table is 0 and its bias excludes all other tokens.
    """

    def __init__(self, size: int, num_tokens: int, end: int) -> None:
        super().__init__()
        self.size = size
        bias = torch.full((num_tokens,), -torch.inf).index_fill(0, torch.tensor(end), 0.0)
        self.register_buffer("bias", bias, persistent=False)

    @override
    def table(self, embedding: nn.Embedding) -> Float[Tensor, "W D"]:
        return self.bias.new_zeros(1, self.size).expand(len(self.bias), -1)

    @override
    def score(
        self,
        vectors: Float[Tensor, "*batch D"],
        embedding: nn.Embedding,
        targets: Int[Tensor, "*batch"],
        mask: Bool[Tensor, "*batch"] | None = None,
        *,
        label_smoothing: float = 0.0,
    ) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        targets = targets if mask is None else targets.masked_fill(~mask, 0)
        log_prob = self.bias[targets]
        log_prob = log_prob if mask is None else log_prob.masked_fill(~mask, 0.0)
        return -log_prob, log_prob
