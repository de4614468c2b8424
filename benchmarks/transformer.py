"""Training steps of the Transformer encoder and decoder, next to torch's, and beam search with kept keys and values.

    python -m benchmarks.transformer                 about ten minutes; writes results/transformer.json
    python -m benchmarks.transformer --parts decoder search       keeps the other rows of the file

Forward pass, loss and gradients of a batch of padded texts. Both encoders start from the same token embeddings with
sinusoidal positions, normalize before each part and use GELU; a test compares their values. The reference is
`torch.nn.TransformerEncoder` with a padding mask. Other rows have dropout (torch's also drops attention weights), rotary
positions, and heads with a structure, for which torch has no counterpart. The decoder is compared with
`torch.nn.TransformerDecoder` and an output layer in the same way: teacher forcing, with padding in the outputs and in the
memory. A search without kept keys and values computes the whole prefix of every hypothesis at every step; both searches return
the same outputs.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from foveal.masking import mask_from_lengths
from foveal.models import (
    DotSpec,
    HeadsSpec,
    SegmentSpec,
    SyntacticSpec,
    TransformerDecoderSpec,
    TransformerEncoderSpec,
)
from foveal.networks.encoders.transformer._positions import sinusoids

from .results import Results, Row
from .timing import Plan, compare, use_one_thread
from .transformer_decoder import VOCABULARY, of_torch, search, step as decoder_step

OUT = Path("results/transformer.json")
MOST = 1.1  # times torch's time
# Texts and tokens of the longest; width and heads; layers.
SIZES = {
    "words": (64, 12, 128, 4, 2),
    "sentences": (32, 32, 256, 4, 3),
    "paragraphs": (8, 128, 256, 8, 3),
}
LEAST = 3.0  # times the time of a search with kept keys and values, at length 100
SEGMENTS = HeadsSpec(attention=SegmentSpec(scorer=DotSpec()))
TREES = HeadsSpec(attention=SyntacticSpec(), layers=(1,))


class TorchEncoder(nn.Module):
    """Embeddings with sinusoidal positions, and torch's encoder."""

    def __init__(self, spec: TransformerEncoderSpec) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, spec.model_size)
        layer = nn.TransformerEncoderLayer(**of_torch(spec))
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
    parser.add_argument("--parts", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    given = parser.parse_args(arguments)
    use_one_thread()
    kept = Results.load(given.out).rows if given.out.exists() else ()
    rows = [row for row in kept if _part(row) not in given.parts]
    for part in given.parts:
        rows += PARTS[part](given.rounds)
    rows.sort(key=lambda row: tuple(PARTS).index(_part(row)))
    Results.here("python -m benchmarks.transformer").with_rows(rows).save(given.out)


def _part(row: Row) -> str:
    """Return the part of the benchmark that a row belongs to, from its name."""
    if "beam search" in row.name:
        return "search"
    return "decoder" if "of the decoder" in row.name else "encoder"


def _encoder_rows(rounds: int) -> list[Row]:
    variants: dict[str, dict[str, Any]] = {
        "rotary positions": {"positions": "rotary"},
        "one head of segments": {"special_heads": (SEGMENTS,)},
        "one head of trees in the first layer": {"special_heads": (TREES,)},
    }
    return _step_rows(TransformerEncoderSpec, step, "a step", variants, rounds)


def _decoder_rows(rounds: int) -> list[Row]:
    variants = {"one head of segments": {"special_heads": (SEGMENTS,)}}
    return _step_rows(
        TransformerDecoderSpec, decoder_step, "a step of the decoder", variants, rounds
    )


def _step_rows(
    kind: Callable[..., Any],
    do_step: Callable[..., Callable[[], None]],
    what: str,
    variants: Mapping[str, Mapping[str, Any]],
    rounds: int,
) -> list[Row]:
    """Measure steps of all sizes: without dropout, with other settings, and with dropout."""
    rows = list[Row]()
    for name, (batch, longest, width, heads, layers) in SIZES.items():
        plain = kind(
            model_size=width,
            num_heads=heads,
            num_layers=layers,
            dropout=0.0,
            positions="sinusoidal",
        )
        calls = {
            "torch": do_step(plain, batch, longest, ours=False),
            "ours": do_step(plain, batch, longest, ours=True),
        }
        for variant, settings in variants.items():
            spec = replace(plain, **settings)
            calls[f"ours, {variant}"] = do_step(spec, batch, longest, ours=True)
        rows += measured(name, what, calls, rounds)
        dropped = replace(plain, dropout=0.1)
        calls = {
            "torch, dropout": do_step(dropped, batch, longest, ours=False),
            "ours, dropout": do_step(dropped, batch, longest, ours=True),
        }
        rows += measured(name, what, calls, rounds)
    return rows


def _search_rows(rounds: int) -> list[Row]:
    rows = list[Row]()
    spec = TransformerDecoderSpec(model_size=256, num_layers=3, dropout=0.0)
    for length in (25, 100):
        kept, computed = (search(spec, 4, length, 5, cached=cached) for cached in (True, False))
        assert torch.equal(kept(), computed())
        calls = {"kept": kept, "computed": computed}
        found = compare(calls, reference="kept", plan=Plan(rounds=min(rounds, 8)))["computed"]
        title = (
            f"beam search of 4 outputs of {length} tokens, beam size 5, 3 layers of width 256, 4 heads: time "
            f"without kept keys and values, divided by the time with them"
        )
        asked = length == 100
        rows.append(
            Row(
                name=title,
                value=found.ratio,
                unit="x",
                spread=found.ratio_spread,
                target=LEAST if asked else None,
                sense=">=" if asked else None,
            )
        )
        print(f"{title} {found.ratio:.2f}", flush=True)
    return rows


def measured(name: str, what: str, calls: dict[str, Callable[[], None]], rounds: int) -> list[Row]:
    """Return the ratio of each call to the first, which is torch's."""
    reference, *others = calls
    timings = compare(calls, reference=reference, plan=Plan(rounds=rounds))
    batch, longest, width, heads, layers = SIZES[name]
    rows = list[Row]()
    for other in others:
        timing, asked = timings[other], other in ("ours", "ours, dropout")
        title = (
            f"{name}, {batch} texts of {longest} tokens, {layers} layers of width {width}, "
            f"{heads} heads: time of {what}, {other}"
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


PARTS: dict[str, Callable[[int], list[Row]]] = {
    "encoder": _encoder_rows,
    "decoder": _decoder_rows,
    "search": _search_rows,
}

if __name__ == "__main__":
    main()
