"""The recipe of inflection: its source splits features, and its model copies new letters."""

from pathlib import Path

import pytest

from foveal.data import Example
from foveal.models import DecoderSpec
from foveal.specs import from_json, to_json
from foveal.tasks import Transduction, TransductionSpec
from foveal.training import Run
from recipes import inflection
from recipes.inflection import Forms

pytestmark = pytest.mark.slow
ROWS = [
    ("talo", "N;IN+ESS(PL)", "taloissa"),
    ("legen", "V;PST;NOM(2,SG)", "gelegt"),
    ("上げる", "V;IMP", "上げろ"),
]


@pytest.fixture
def forms(tmp_path: Path) -> Forms:
    path = tmp_path / "forms.trn"
    path.write_text("".join("\t".join(row) + "\n" for row in ROWS), encoding="utf-8")
    return Forms(path=str(path))


def test_combined_features_are_split(forms: Forms) -> None:
    found = [each.features for each in forms]
    assert found == ["N;IN;ESS;PL", "V;PST;NOM;2;SG", "V;IMP"]
    assert [(each.source, each.target) for each in forms] == [(row[0], row[2]) for row in ROWS]


def test_every_language_has_a_run_that_converts_to_json() -> None:
    for language in inflection.LANGUAGES:
        run = inflection.recipe(language)
        assert from_json(Run, to_json(run), also=inflection.SPECS) == run
        assert isinstance(run.train, Forms)
        assert run.train.files()[0].endswith(f"{language}.trn.gz")


def test_the_model_writes_letters_that_no_training_form_has(forms: Forms) -> None:
    """New letters become slots, and the probability of a copied slot trains like any other."""
    spec = inflection.recipe().task
    assert isinstance(spec, TransductionSpec)
    assert isinstance(spec.model.decoder, DecoderSpec)
    task = spec.build_from(list(forms) * 50)
    assert isinstance(task, Transduction)
    new = Example("見げる", "見げろ", "V;IMP")
    encoded = task.encode(new)
    slot = len(task.vocabularies.source)
    assert encoded.source[0] == encoded.target[0] == slot
    assert task.decode([slot], new) == ["見"]
    loss = task.loss(task.collate([encoded]))
    assert loss.total.isfinite()
