"""`foveal demo`: a first model from a sample of the package, without files, settings or a network."""

import shutil
import sys
from pathlib import Path

from ..attention import AttentionTrace
from ..bundles import load_bundle
from ..data import tsv
from ..datasets import sample
from ..inspection import explain
from . import _explore, _fit
from ._report import PAGE
from ._speech import explaining

SAMPLE = "pronunciation"
NUM_SHOWN = 3
_SHADES = " ░▒▓█"  # from no attention to full attention


def command(
    *,
    out: Path = Path("foveal-demo"),
    minutes: float = 1.0,
    threads: int | None = None,
    explore: bool = False,
) -> None:
    """Train a small model that pronounces English words, print some predictions, and write a report.

    The 2,500 training words ship with the package. The demo takes less than two minutes and needs no network.

    Args:
        out: The folder for the words and the model. An earlier demo in it is replaced.
        minutes: The training time.
        threads: The number of threads that torch uses, as in `foveal fit`.
        explore: Open the explorer in the browser after training. Needs the extra serve.
    """
    console = explaining()
    words, model = out / "words", out / "model"
    shutil.copytree(sample(SAMPLE), words, dirs_exist_ok=True)
    train, dev, test = (str(words / f"{part}.tsv") for part in ("train", "dev", "test"))
    command_line = (
        f"foveal fit {train} --dev {dev} --test {test} --out {model} --minutes {minutes:g}"
    )
    console.print(
        f"Training a model with this command: {command_line}", markup=False, soft_wrap=True
    )
    _fit.command(
        (train,), dev=(dev,), test=(test,), out=model, minutes=minutes, threads=threads, fresh=True
    )
    _show_predictions(model, test)
    console.print(f"\nReport: {model / PAGE}", markup=False, soft_wrap=True)
    console.print(
        f"To explain one prediction: foveal explain {model} knight", markup=False, soft_wrap=True
    )
    if explore:
        _explore.command((model,))
    else:
        console.print(
            f"To query the model in the browser: foveal explore {model}",
            markup=False,
            soft_wrap=True,
        )


def _show_predictions(model: Path, test: str) -> None:
    """Print the first test words, with the letters that each phoneme attends to."""
    task = load_bundle(model)
    sys.stdout.write("\nWords from the test set, with the letters that each phoneme attends to:\n")
    for _, example in zip(range(NUM_SHOWN), tsv(test), strict=False):
        answer = explain(task, example)
        verdict = "correct" if answer.output == example.target else f"expected {example.target}"
        sys.stdout.write(f"\n{example.source} -> {answer.output}  ({verdict}; ")
        sys.stdout.write(f"confidence {answer.confidence:.2f})\n")
        if answer.trace is not None:
            sys.stdout.write(heat_map(answer.trace))


def heat_map(trace: AttentionTrace) -> str:
    """Render attention as text: a row for each output, a shaded cell for each input.

    Args:
        trace: Attention weights of one prediction.

    Returns:
        Lines of text, the first with the input tokens.

    Examples:
        >>> trace = AttentionTrace(kind="softmax", sources=("p", "h"), targets=("F",), weights=((0.6, 0.4),))
        >>> print(heat_map(trace), end="")
                  p h
                F ▓ ▒
    """
    width = 9
    lines = [" " * width + "".join(f" {source}" for source in trace.sources)]
    for target, weights in zip(trace.targets, trace.weights, strict=True):
        cells = (_SHADES[min(int(weight * 5), 4)] for weight in weights)
        lines.append(f"{target:>{width}}" + "".join(f" {cell}" for cell in cells))
    return "".join(f"{line.rstrip()}\n" for line in lines)
