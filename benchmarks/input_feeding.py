"""Time a training step of a decoder with input feeding, compared with per-step accumulation of memory gradients.

    python -m benchmarks.input_feeding            about a minute; writes results/input_feeding.json

A step computes the loss and gradients of 30 texts, with soft attention over scaled bilinear scores. The reference
is the same decoder without `shared_operand`, which has the same gradients.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import patch

import torch

from foveal.attention import Memory
from foveal.models import BilinearSpec, DecoderSpec, SoftmaxSpec
from foveal.networks.decoders import _fed_steps

from .results import Results, Row
from .timing import Plan, compare, use_one_thread

OUT = Path("results/input_feeding.json")
BATCH, VOCABULARY, VALUE_SIZE = 30, 150, 96
# Positions of the memory and tokens of a text: a sentence that is just long enough; formulas; and pages.
SIZES = {"sentences": (48, 48), "formulas": (200, 40), "pages": (800, 60)}


def update(num_places: int, num_symbols: int, *, shared: bool) -> Callable[[], None]:
    """Return a call that does one training step."""
    torch.manual_seed(1)
    attention = SoftmaxSpec(scorer=BilinearSpec(scaled=True))
    spec = DecoderSpec(
        embedding_size=64, hidden_size=192, dropout=0.0, attention=attention, input_feeding=True
    )
    decoder = spec.build(VOCABULARY, VALUE_SIZE, VALUE_SIZE)
    values = torch.randn(BATCH, num_places, VALUE_SIZE, requires_grad=True)
    tokens = torch.randint(VOCABULARY, (BATCH, num_symbols))
    kept = _fed_steps.shared_operand if shared else lambda whole: whole

    def run() -> None:
        with patch.object(_fed_steps, "shared_operand", kept):
            memory = decoder.remember(Memory(values, None, values.mean(-2)))
            decoder.zero_grad()
            decoder.unroll(tokens, memory).log_probs.square().mean().backward()

    return run


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all sizes and write the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args(arguments)
    use_one_thread()
    rows = list[Row]()
    for name, (places, symbols) in SIZES.items():
        both = {kind: update(places, symbols, shared=kind == "one") for kind in ("each", "one")}
        timing = compare(both, reference="each", plan=Plan(rounds=given.rounds))["one"]
        row = f"{name}, {places} places and {symbols} symbols: time of an update"
        rows.append(Row(name=row, value=timing.ratio, unit="x", spread=timing.ratio_spread))
        print(f"{row} {timing.ratio:.2f}", flush=True)
    Results.here("python -m benchmarks.input_feeding").with_rows(rows).save(given.out)


if __name__ == "__main__":
    main()
