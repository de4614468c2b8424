"""CRF layer: maps token vectors to a distribution over taggings.

    score(y) = start[y_1] + sum_t (W h_t + b)[y_t] + sum_t transitions[y_t, y_{t+1}] + end[y_T]

Axes: *batch any leading shape, T tokens, D width of a vector, K tags.
References: Lafferty et al. 2001; Huang et al. 2015 (on top of a bidirectional LSTM).
"""

from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from typing_extensions import override

from ..batch_invariant import Linear
from ..distributions import LinearChain


@final
class ChainCRF(nn.Module):
    """The last layer of a tagger: a linear layer and the transition, start and end scores of a `LinearChain`.

    The transition, start and end scores are parameters that start at 0.

    Args:
        input_size: Width of the vectors.
        num_tags: Number of tags.

    Examples:
        >>> crf = ChainCRF(input_size=8, num_tags=3)
        >>> mask = torch.tensor([[True, True, True, True], [True, True, False, False]])
        >>> chain = crf(torch.randn(2, 4, 8), mask)
        >>> loss = -chain.log_prob(torch.zeros(2, 4, dtype=torch.long)).mean()  # padding may hold any tag
        >>> chain.argmax().shape, chain.marginals().shape
        (torch.Size([2, 4]), torch.Size([2, 4, 3]))
    """

    def __init__(self, input_size: int, num_tags: int) -> None:
        super().__init__()
        self.unary = Linear(input_size, num_tags)
        self.transitions = nn.Parameter(torch.zeros(num_tags, num_tags))
        self.start = nn.Parameter(torch.zeros(num_tags))
        self.end = nn.Parameter(torch.zeros(num_tags))

    @override
    def forward(
        self,
        hidden: Float[Tensor, "*batch T D"],
        mask: Bool[Tensor, "*#batch T"] | None = None,
    ) -> LinearChain:
        """Compute the distribution over taggings of each sequence.

        Args:
            hidden: A vector for each token, for example the output of an encoder.
            mask: True on real tokens; None if all tokens are real.

        Returns:
            A linear chain whose states are the tags; its negative `log_prob` is the loss of a tagging.
        """
        if mask is not None:  # NaN on padding would reach the gradient of the weights
            hidden = hidden.masked_fill(~mask.unsqueeze(-1), 0.0)
        return LinearChain(self.unary(hidden), self.transitions, mask, self.start, self.end)
