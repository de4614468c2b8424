r"""SCAN: commands to actions, and generalization to unseen commands.

    foveal fit --recipe recipes/scan.py --out runs/scan             or :jump, :length, :jump_hard, ...
    python -m benchmarks.records fit scan --runs runs                  all of them, three seeds
    python -m benchmarks.records score scan --runs runs

Splits: `simple` (random); `jump`, where training has the word "jump" only as a command of one word; `length`,
where the test outputs are longer than all training outputs. The last two are trained with three kinds of attention,
about four minutes each:

    jump            softmax over the words of the command
    jump_hard       each action reads one word, marginalized exactly (exact hard attention)
    jump_segment    each action reads one or several segments of words (a chain over the words)

`length_none` has no attention, for `python -m benchmarks.lectures fit commands_by_length`.

There is no development set, and the test set selects nothing: runs have a fixed length and keep their last
weights. `foveal data get scan` gets the data.

Reference: Lake and Baroni 2018, Generalization without systematicity.
"""

from functools import partial

from foveal.data import RegexLines, WhitespaceSpec, regex_lines
from foveal.datasets import data_folder
from foveal.models import (
    AttentionSpec,
    DecoderSpec,
    LatentHardSpec,
    SegmentSpec,
    Seq2SeqSpec,
    SoftmaxSpec,
    TextEncoderSpec,
)
from foveal.tasks import PredictionSpec, TransductionSpec
from foveal.training import Run, TrainingSpec

DATA = data_folder()
SPLITS = {"simple": "simple", "jump": "addprim_jump", "length": "length"}
KINDS = ("", "_hard", "_segment")
CASES = ("simple", *(f"{split}{kind}" for split in ("jump", "length") for kind in KINDS))
ATTENTIONS: dict[str, AttentionSpec | None] = {
    "": SoftmaxSpec(),
    "hard": LatentHardSpec(),
    "segment": SegmentSpec(),
    "none": None,
}
LONGEST = 50  # actions and the end token


def recipe(case: str = "simple") -> Run:
    """Return a run from commands to actions."""
    split, _, kind = case.partition("_")
    return Run(
        task=TransductionSpec(
            source=WhitespaceSpec(),
            target=WhitespaceSpec(),
            model=Seq2SeqSpec(
                encoder=TextEncoderSpec(embedding_size=64, hidden_size=128, dropout=0.1),
                decoder=DecoderSpec(
                    embedding_size=64, hidden_size=128, dropout=0.1, attention=ATTENTIONS[kind]
                ),
            ),
            label_smoothing=0.0,
            prediction=PredictionSpec(max_length=LONGEST),
        ),
        train=part(split, "train"),
        test=part(split, "test"),
        training=TrainingSpec(steps=3500, batch_tokens=2000, learning_rate=4e-3, seed=1),
    )


# fmt: off
(jump, jump_hard, jump_segment,
 length, length_hard, length_segment) = (partial(recipe, case) for case in CASES[1:])
# fmt: on
length_none = partial(recipe, "length_none")


def part(split: str, name: str) -> RegexLines:
    """Return one of the two files of a split."""
    path = DATA / f"scan/tasks_{name}_{SPLITS[split]}.txt.gz"
    return regex_lines(path, "IN: (?P<source>.*) OUT: (?P<target>.*)")
