"""Text encoder: embeddings of tokens, then a recurrent stack.

    x_t = E[token_t],   h = stack(x),   values = h,   summary = the top layer's state at the end

The summary of a bidirectional stack combines the end of the text from the forward direction with its
beginning from the backward direction (Sutskever et al. 2014; Bahdanau et al. 2015, section 3.2).

With a `SpelledEmbedding`, the inputs also have the ids of the spelling features of each word, along an
extra axis.

Axes: *batch any leading shape, T tokens, V width of a value; *tokens is *batch T, or *batch T P.
"""

from typing import final

from jaxtyping import Bool, Int
from torch import Tensor, nn
from typing_extensions import override

from ...attention import Memory
from ...errors import ShapeError
from .._bridges import LearnedStateBridge
from .._dropout import Dropout
from ..recurrent._stacks import RecurrentStack
from ._encoder import AbstractEncoder, without_padding
from ._spelled_embedding import SpelledEmbedding


@final
class TextEncoder(AbstractEncoder):
    """Applies embedding, dropout and stack; the outputs have the same dropout, the summary has none.

    Args:
        embedding: Table of the token vectors.
        stack: Recurrent network over the token vectors.
        dropout: Dropout probability of the token vectors and of the outputs.
        learned_state: Learn the initial state of every layer; otherwise it is 0.

    Raises:
        ShapeError: If the input width of the stack is not the width of the embedding.

    Examples:
        >>> import torch
        >>> from foveal.networks import recurrent_stack
        >>> encoder = TextEncoder(nn.Embedding(9, 4), recurrent_stack(4, 5, bidirectional=True))
        >>> memory = encoder(torch.tensor([[1, 2, 3]]))
        >>> memory.values.shape, memory.summary.shape
        (torch.Size([1, 3, 10]), torch.Size([1, 10]))
    """

    def __init__(
        self,
        embedding: nn.Embedding | SpelledEmbedding,
        stack: RecurrentStack,
        dropout: float = 0.0,
        *,
        learned_state: bool = False,
    ) -> None:
        super().__init__()
        if embedding.embedding_dim != stack.input_size:
            raise ShapeError(
                f"TextEncoder: the stack must have input_size {embedding.embedding_dim}, the width "
                f"of the embeddings, got {stack.input_size}. Make them equal."
            )
        self.embedding, self.stack = embedding, stack
        self.initial = LearnedStateBridge(stack) if learned_state else None
        self.dropout = Dropout(dropout)
        self.value_size = self.summary_size = stack.output_size

    @override
    def forward(
        self, inputs: Int[Tensor, "*tokens"], mask: Bool[Tensor, "*batch T"] | None = None
    ) -> Memory:
        tokens = without_padding(inputs, mask)
        vectors = self.dropout(self.embedding(tokens))
        first = None
        if self.initial is not None:
            zero = self.stack.start(vectors.shape[:-2])
            first = self.initial.start(Memory(vectors, mask), zero)
        outputs, state = self.stack(vectors, mask, first)
        return Memory(self.dropout(outputs), mask, state[-1].hidden)
