r"""Entailment as generation: write a hypothesis that follows from the premise, with four ways to condition the decoder.

    foveal fit --recipe recipes/hypotheses.py:attention --out runs/hypotheses
    python -m benchmarks.lectures fit hypotheses --runs runs              all cases, three seeds
    python -m benchmarks.lectures score hypotheses --runs runs

A case is the way in which the decoder gets the premise (CS7015 Lecture 16, Khapra, section 16.2), whose last state is h:

    initial_state     s_0 = h
    every_step        s_t = RNN( s_{t-1}, [y_{t-1}; h] ),   s_0 = 0
    both              s_0 = h, and h at every step
    attention         s_0 = h, and attention to the words of the premise after every step

The training pairs are the entailed pairs of the counterfactual pairs made from SNLI (Kaushik et al. 2020), of the
development file of SNLI and of the training file of SICK; the test pairs are the entailed pairs of the test file of
SNLI. `judge` is a classifier, trained on all pairs of the same training files, which judges the hypotheses that the
other cases write. No premise of the validation or test file is in the training file.

`foveal data get sick_nli snli_dev_test cad_nli` gets the data. The recipe writes the texts once into
`.cache/hypotheses` of the checkout.
"""

from collections.abc import Iterator
from functools import partial
from typing import Literal

from foveal.data import TabSeparated, WhitespaceSpec, tsv
from foveal.models import DecoderSpec, Seq2SeqSpec, SoftmaxSpec, TextEncoderSpec
from foveal.tasks import PairClassificationSpec, TransductionSpec
from foveal.training import Run, TrainingSpec
from recipes import entailment
from recipes.entailment import DATA, ROOT, Pair

FOLDER = ROOT / ".cache/hypotheses"
BRIDGES: dict[str, Literal["initial_state", "every_step", "both"]] = {
    "initial_state": "initial_state",
    "every_step": "every_step",
    "both": "both",
    "attention": "initial_state",
}
JUDGE = "judge"
CASES = (JUDGE, *BRIDGES)
ENTAILED = "entailment"
CAD = "cad_nli/all_combined"


def recipe(case: str = "attention") -> Run:
    """Return a run that writes hypotheses, or the run of the classifier that judges them."""
    if case == JUDGE:
        return Run(
            task=PairClassificationSpec(
                source=WhitespaceSpec(), min_count=2, model=entailment.model("soft")
            ),
            train=part("train", all_labels=True),
            dev=part("dev", all_labels=True),
            test=part("test", all_labels=True),
            training=TrainingSpec(epochs=4.0, batch_size=64, learning_rate=2e-3, seed=1),
        )
    return Run(
        task=TransductionSpec(
            source=WhitespaceSpec(), target=WhitespaceSpec(), min_count=2, model=model(case)
        ),
        train=part("train"),
        dev=part("dev"),
        test=part("test"),
        training=TrainingSpec(epochs=8.0, batch_size=32, learning_rate=2e-3, seed=1),
    )


def model(case: str) -> Seq2SeqSpec:
    """Return a small model with the conditioning of a case."""
    return Seq2SeqSpec(
        encoder=TextEncoderSpec(embedding_size=64, hidden_size=64, dropout=0.2),
        decoder=DecoderSpec(
            embedding_size=64,
            hidden_size=128,
            dropout=0.2,
            attention=SoftmaxSpec() if case == "attention" else None,
            bridge=BRIDGES[case],
        ),
    )


judge, initial_state, every_step, both, attention = (partial(recipe, case) for case in CASES)


def part(name: str, *, all_labels: bool = False) -> TabSeparated:
    """Return the pairs of a part: premise and hypothesis, or with all labels the label too."""
    path = FOLDER / f"hypotheses_{name}{'_labeled' if all_labels else ''}.tsv"
    if not path.exists():
        entailment.write(path, pairs(name, all_labels=all_labels))
    return tsv(path, second=1, target=2) if all_labels else tsv(path)


def pairs(name: str, *, all_labels: bool) -> Iterator[Pair]:
    """Yield the different pairs of a part, only the entailed ones or with all labels."""
    held_out = {pair.first for each in ("dev", "test") for pair in _pairs(each)}
    seen = set[Pair]()
    for pair in _pairs(name):
        is_new = pair not in seen and (name != "train" or pair.first not in held_out)
        if is_new and all(pair) and pair.label in entailment.LABELS:
            seen.add(pair)
            if all_labels or pair.label == ENTAILED:
                yield pair


def _pairs(name: str) -> Iterator[Pair]:
    """Yield the pairs of the files of a part."""
    if name == "test":
        yield from entailment.pairs("snli", "test")
        return
    yield from entailment.counterfactual(DATA / f"{CAD}/{name}.tsv.gz")
    if name == "train":
        yield from entailment.pairs("snli", "dev")
        yield from entailment.pairs("sick", "train")
