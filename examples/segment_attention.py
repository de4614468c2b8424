"""Learn to attend to a segment, given only the sum of the selected values.

Each sequence has one run of marked positions, and the target is the sum of the values there. The
model gets no labels of the positions: the loss reaches the scores only through the marginals of a
linear chain,

    context = sum_t p(y_t = 1) values[t],      loss = (context - target)^2.

Run: python examples/segment_attention.py
"""

import torch
from torch import Tensor, nn

from foveal.distributions import LinearChain

NUM_STEPS = 200
BATCH = 64
LENGTH = 12


class SegmentAttention(nn.Module):
    """Scores from a feature of each position; state 1 means "selected"."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(1, 2)
        self.transitions = nn.Parameter(torch.zeros(2, 2))

    def forward(self, features: Tensor) -> LinearChain:
        """Return a distribution over labelings of T positions, given features (B, T)."""
        return LinearChain(self.score(features.unsqueeze(-1)), self.transitions)


def batch_of_sequences(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Return noisy features (B, T), values (B, T), and the marked positions (B, T)."""
    start = torch.randint(0, LENGTH - 4, (BATCH, 1), generator=generator)
    size = torch.randint(2, 5, (BATCH, 1), generator=generator)
    position = torch.arange(LENGTH)
    marked = (position >= start) & (position < start + size)
    noise = 0.3 * torch.randn(BATCH, LENGTH, generator=generator)
    values = torch.randn(BATCH, LENGTH, generator=generator)
    return marked + noise, values, marked


def main() -> None:
    """Train, then compare the best labeling with the marked positions."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    attention = SegmentAttention()
    optimizer = torch.optim.Adam(attention.parameters(), lr=0.1)

    for step in range(NUM_STEPS):
        features, values, marked = batch_of_sequences(generator)
        weights = attention(features).marginals()[..., 1]
        context = (weights * values).sum(-1)
        target = (marked * values).sum(-1)
        loss = (context - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == NUM_STEPS - 1:
            print(f"step {step:3d}  loss {loss.item():.3f}")

    features, _, marked = batch_of_sequences(generator)
    chain = attention(features)
    right = (chain.argmax() == marked.long()).float().mean().item()
    print(f"positions labeled right: {right:.1%}")
    print(f"mean entropy of a labeling: {chain.entropy().mean().item():.2f} nats")
    assert right > 0.95, "the chain should have found the segments"


if __name__ == "__main__":
    main()
