"""The training function that the examples share."""

from random import Random

import pytest
import torch

from examples.support import Options, train
from foveal.data import Example
from foveal.models import ClassifierSpec, WordEncoderSpec
from foveal.tasks import Classification, ClassificationSpec

SPEC = ClassificationSpec(model=ClassifierSpec(encoder=WordEncoderSpec(embedding_size=8)))


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    chance = Random(0)
    texts = [" ".join(chance.choices("abcdef", k=5)) + f" {label}" for label in "xy" * 40]
    return [Example(text, text[-1]) for text in texts]


def trained(examples: list[Example], *, epochs: int, seed: int = 0) -> Classification:
    return train(SPEC, examples, Options(cut=None, epochs=epochs, seed=seed), learning_rate=0.05)


def test_training_learns_its_examples(examples: list[Example]) -> None:
    assert trained(examples, epochs=8).evaluate(examples).value == 100


def test_the_seed_decides_the_weights(examples: list[Example]) -> None:
    first, again, other = (trained(examples, epochs=1, seed=seed) for seed in (3, 3, 4))
    weights = [task.model.state_dict()["output.weight"] for task in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_progress_goes_to_the_standard_error(
    examples: list[Example], capsys: pytest.CaptureFixture[str]
) -> None:
    trained(examples, epochs=1)
    printed = capsys.readouterr()
    assert not printed.out
    assert "finished after 3 steps" in printed.err
