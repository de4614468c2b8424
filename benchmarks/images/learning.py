"""Compare how fast captioning trains with layer or batch norm, and with scaled or unscaled scores.

    python -m benchmarks.images.learning            about ten CPU minutes

Trains the scene recipe with soft attention for 500 steps; the figure is the loss per token, averaged over the
last hundred steps. results/image_learning.json
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Literal

import torch

from foveal.models import BilinearSpec, ImageEncoderSpec, SoftmaxSpec
from foveal.tasks import CaptioningSpec
from foveal.training import Run
from recipes import scene_captions

from ..lectures._comparison import mean_row, spec_of
from ..results import Results, Row, digest

NAME = "image_learning"
NUM_UPDATES, NUM_COUNTED = 500, 100


def case(norm: Literal["layer", "batch"], *, scaled: bool) -> Run:
    """Return the recipe with this norm, and with scaled or unscaled scores."""
    run = scene_captions.recipe("soft")
    task = run.task
    assert isinstance(task, CaptioningSpec)
    model = task.model
    assert isinstance(model.encoder, ImageEncoderSpec)
    attention = SoftmaxSpec(scorer=BilinearSpec(scaled=scaled))
    model = replace(
        model,
        encoder=replace(model.encoder, norm=norm),
        decoder=replace(model.decoder, attention=attention),
    )
    return replace(run, task=replace(task, model=model))


def cases() -> dict[str, Run]:
    """Return all cases by name; draw the scenes if they do not exist yet."""
    return {
        f"{norm}, {'scaled' if scaled else 'unscaled'}": case(norm, scaled=scaled)
        for norm in ("layer", "batch")
        for scaled in (False, True)
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit all cases and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--updates", type=int, default=NUM_UPDATES)
    parser.add_argument("--results", type=Path, default=Path("results"))
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    runs, rows = cases(), list[Row]()
    for name, run in runs.items():
        losses = [_loss(run, seed, given.updates) for seed in given.seeds]
        rows.append(mean_row(f"{name}: loss of a symbol", losses, "", given.seeds))
        print(f"{rows[-1].name} {rows[-1].value:.3f}", flush=True)
    made = Results.here("python -m benchmarks.images.learning").with_rows(rows)
    manifest = scene_captions.FOLDER / "manifest.json"
    replace(
        made,
        data={manifest.name: digest(manifest)},
        spec={name: spec_of(run) for name, run in runs.items()},
    ).save(given.results / f"{NAME}.json")


def _loss(run: Run, seed: int, num_updates: int) -> float:
    training = replace(run.training, epochs=None, steps=num_updates, schedule="constant", seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        replace(run, training=training, dev=None, test=None).fit(out, device="cpu")
        lines = (out / "log.jsonl").read_text(encoding="utf-8").splitlines()
    steps = [event for line in lines if (event := json.loads(line))["event"] == "step_done"]
    return fmean(step["loss"] for step in steps if step["step"] > num_updates - NUM_COUNTED)


if __name__ == "__main__":
    main()
