"""A training step of the Transformer encoder, next to torch's.

    python -m benchmarks.transformer            about five minutes; writes results/transformer.json

Forward pass, loss and gradients of a batch of padded texts. Both encoders start from the same token embeddings with
sinusoidal positions, normalize before each part and use GELU; a test compares their values. The reference is
`torch.nn.TransformerEncoder` with a padding mask. Other rows have dropout (torch's also drops attention weights), rotary
positions, and heads with a structure, for which torch has no counterpart.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from foveal.masking import mask_from_lengths
from foveal.models import DotSpec, HeadsSpec, SegmentSpec, SyntacticSpec, TransformerEncoderSpec
from foveal.networks.encoders._positions import sinusoids

from .results import Results, Row
from .timing import Plan, compare, use_one_thread

OUT = Path("results/transformer.json")
VOCABULARY = 200
MOST = 1.1  # times torch's time
# Texts and tokens of the longest; width and heads; layers.
SIZES = {
    "words": (64, 12, 128, 4, 2),
    "sentences": (32, 32, 256, 4, 3),
    "paragraphs": (8, 128, 256, 8, 3),
}
SEGMENTS = HeadsSpec(attention=SegmentSpec(scorer=DotSpec()))


class TorchEncoder(nn.Module):
    """Embeddings with sinusoidal positions, and torch's encoder."""

    def __init__(self, spec: TransformerEncoderSpec) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, spec.model_size)
        layer = nn.TransformerEncoderLayer(
            spec.model_size,
            spec.num_heads,
            4 * spec.model_size,
            dropout=spec.dropout,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        norm = nn.LayerNorm(spec.model_size)
        self.encoder = nn.TransformerEncoder(
            layer, spec.num_layers, norm, enable_nested_tensor=False
        )
        self.dropout = nn.Dropout(spec.dropout)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the values of each token."""
        size = self.embedding.embedding_dim
        places = sinusoids(torch.arange(tokens.shape[1]), size)
        rows = self.dropout(size**0.5 * self.embedding(tokens) + places)
        return self.encoder(rows, src_key_padding_mask=~mask)


def step(
    spec: TransformerEncoderSpec, batch: int, longest: int, *, ours: bool
) -> Callable[[], None]:
    """Return a call that does one training step."""
    torch.manual_seed(1)
    encoder = spec.build(VOCABULARY) if ours else TorchEncoder(spec)
    tokens = torch.randint(VOCABULARY, (batch, longest))
    lengths = torch.randint(longest // 2, longest + 1, (batch,))
    lengths[0] = longest
    mask = mask_from_lengths(lengths, longest)

    def run() -> None:
        encoder.zero_grad()
        found = encoder(tokens, mask)
        values = found.values if ours else found
        values[mask].square().mean().backward()

    return run


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all sizes and write the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--rounds", type=int, default=60)
    given = parser.parse_args(arguments)
    use_one_thread()
    rows = list[Row]()
    for name, (batch, longest, width, heads, layers) in SIZES.items():
        plain = TransformerEncoderSpec(
            model_size=width,
            num_heads=heads,
            num_layers=layers,
            dropout=0.0,
            positions="sinusoidal",
        )
        dropped = replace(plain, dropout=0.1)
        both = {
            "torch": step(plain, batch, longest, ours=False),
            "ours": step(plain, batch, longest, ours=True),
            "ours, rotary positions": step(
                replace(plain, positions="rotary"), batch, longest, ours=True
            ),
            "ours, one head of segments": step(
                replace(plain, special_heads=(SEGMENTS,)), batch, longest, ours=True
            ),
            "ours, one head of trees in the first layer": step(
                replace(plain, special_heads=(HeadsSpec(attention=SyntacticSpec(), layers=(1,)),)),
                batch,
                longest,
                ours=True,
            ),
        }
        rows += measured(name, both, given.rounds)
        both = {
            "torch, dropout": step(dropped, batch, longest, ours=False),
            "ours, dropout": step(dropped, batch, longest, ours=True),
        }
        rows += measured(name, both, given.rounds)
    Results.here("python -m benchmarks.transformer").with_rows(rows).save(given.out)


def measured(name: str, calls: dict[str, Callable[[], None]], rounds: int) -> list[Row]:
    """Return the ratio of each call to the first, which is torch's."""
    reference, *others = calls
    timings = compare(calls, reference=reference, plan=Plan(rounds=rounds))
    batch, longest, width, heads, layers = SIZES[name]
    rows = list[Row]()
    for other in others:
        timing, asked = timings[other], other in ("ours", "ours, dropout")
        title = (
            f"{name}, {batch} texts of {longest} tokens, {layers} layers of width {width}, "
            f"{heads} heads: time of a step, {other}"
        )
        rows.append(
            Row(
                name=title,
                value=timing.ratio,
                unit="x torch",
                spread=timing.ratio_spread,
                target=MOST if asked else None,
                sense="<=" if asked else None,
            )
        )
        print(f"{title} {timing.ratio:.2f}", flush=True)
    return rows


if __name__ == "__main__":
    main()
