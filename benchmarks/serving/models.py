"""The served models and their inputs."""

import random
from pathlib import Path

from examples.support import DATA
from foveal.cli._main import main as foveal
from foveal.data import tsv

FILES = {name: f"g2p_sigmorphon2021/low/ice_{name}.tsv" for name in ("train", "dev", "test")}
SEED = 1

# The model that `foveal fit` chooses for 800 words, and models two and four times as wide.
WIDTHS = {"ice_128": 128, "ice_256": 256, "ice_512": 512}
USUAL = "ice_128"
_MINUTES = 2.0  # training time, enough for outputs of realistic length


def fitted(folder: Path) -> dict[str, Path]:
    """Return the runs in a folder, and fit the missing ones."""
    train, dev = (str(DATA / FILES[name]) for name in ("train", "dev"))
    for name, width in WIDTHS.items():
        if not (folder / name / "manifest.json").is_file():
            widths = {"hidden_size": width, "embedding_size": width // 2}
            settings = [
                word
                for part in ("encoder", "decoder")
                for setting, value in widths.items()
                for word in ("--set", f"{part}.{setting}={value}")
            ]
            ways = ["--minutes", str(_MINUTES), "--seed", str(SEED), "--fresh"]
            out = str(folder / name)
            foveal(["fit", train, "--dev", dev, "--out", out, *ways, *settings])
    return {name: folder / name for name in WIDTHS}


def texts() -> list[str]:
    """Return words, and compounds of two and three words, in equal parts."""
    words = [example.text for name in ("dev", "test") for example in tsv(DATA / FILES[name])]
    generator = random.Random(SEED)
    return [
        "".join(generator.sample(words, count)) for count in (1, 2, 3) for _ in range(len(words))
    ]
