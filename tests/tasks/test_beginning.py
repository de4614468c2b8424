"""A task initialized with the weights of a bundle gives the same answers, even if token ids differ."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from foveal.bundles import save_bundle
from foveal.bundles._warm_start import warm_start
from foveal.data import Example, FeaturesSpec
from foveal.data.vocabularies._vocabularies import Vocabularies
from foveal.errors import BundleError
from foveal.models import Seq2SeqSpec
from foveal.tasks import TransductionSpec
from tests.tasks.tiny import (
    DECODER,
    ENCODER,
    documents,
    opinions,
    pairs,
    sentences,
    stories,
    tasks,
    transduction,
    upper_cased,
)

EXAMPLES = {
    "transduction": upper_cased(20),
    "classification": opinions(20),
    "documents": documents(20),
    "pair_classification": pairs(20),
    "tagging": sentences(20),
    "language_modeling": upper_cased(20),
    "question_answering": stories(20),
}


def turned(vocabularies: Vocabularies) -> Vocabularies:
    """Return the same tokens with other ids."""
    kinds = {
        name: getattr(vocabularies, name) for name in ("source", "target", "features", "labels")
    }
    names = {"labels": "names"}
    return replace(
        vocabularies,
        **{
            kind: type(known)(tuple(reversed(getattr(known, names.get(kind, "tokens")))))
            for kind, known in kinds.items()
            if known is not None
        },
    )


def loss_of(task: Any, kind: str) -> float:
    with task.answering():
        return task.loss(task.collate([task.encode(one) for one in EXAMPLES[kind]])).total.item()


@pytest.mark.parametrize("kind", sorted(EXAMPLES))
def test_symbols_with_other_numbers_are_the_same_symbols(kind: str, tmp_path: Path) -> None:
    task = tasks()[kind]
    save_bundle(task, tmp_path)
    other = task.spec.build(turned(task.vocabularies))
    expected = pytest.approx(loss_of(task, kind), rel=1e-5)
    assert loss_of(other, kind) != expected
    warm_start(other, tmp_path)
    assert loss_of(other, kind) == expected


@pytest.mark.parametrize("copy", [False, True])
def test_features_and_copying_keep_their_rows(copy: bool, tmp_path: Path) -> None:
    """The features follow the source tokens in one table, and the slots of unseen tokens lie between them."""
    tags = ("V;PST", "N;PL", "V;PL;3")
    examples = [
        replace(one, features=tags[number % 3]) for number, one in enumerate(upper_cased(20))
    ]
    spec = TransductionSpec(
        features=FeaturesSpec(),
        model=Seq2SeqSpec(encoder=ENCODER, decoder=replace(DECODER, copy=copy)),
    )
    task = spec.build_from(examples)
    save_bundle(task, tmp_path)
    other = spec.build(turned(task.vocabularies))
    unseen = [
        Example("dé", "dÉ", features="V;PL")
    ]  # read and written through a slot if the model copies

    def loss(of: Any) -> float:
        with of.answering():
            batch = of.collate([of.encode(one) for one in (*examples, *unseen)])
            return of.loss(batch).total.item()

    expected = pytest.approx(loss(task), rel=1e-5)
    assert loss(other) != expected
    warm_start(other, tmp_path)
    assert loss(other) == expected


def test_new_symbols_keep_what_was_drawn_for_them(tmp_path: Path) -> None:
    task = transduction()
    save_bundle(task, tmp_path)
    torch.manual_seed(3)
    spec = TransductionSpec(model=Seq2SeqSpec(encoder=ENCODER, decoder=DECODER))
    other = spec.build_from(upper_cased(200, letters="dexyz"))
    table = {name: weights.clone() for name, weights in other.model.state_dict().items()}
    warm_start(other, tmp_path)
    source, known = other.vocabularies.source, task.vocabularies.source
    name = "encoder.embedding.weight"
    got, theirs = other.model.state_dict()[name], task.model.state_dict()[name]
    for letter in "de":
        assert got[source.encode([letter])].equal(theirs[known.encode([letter])])
    for letter in "xyz":
        assert got[source.encode([letter])].equal(table[name][source.encode([letter])])


def test_another_model_is_refused(tmp_path: Path) -> None:
    save_bundle(transduction(), tmp_path)
    wider = transduction(decoder=replace(DECODER, hidden_size=32))
    before = {name: weights.clone() for name, weights in wider.model.state_dict().items()}
    with pytest.raises(
        BundleError, match=r"is \(1, 24\), expected \(1, 32\)\. Build the model with"
    ):
        warm_start(wider, tmp_path)
    assert all(weights.equal(before[name]) for name, weights in wider.model.state_dict().items())
