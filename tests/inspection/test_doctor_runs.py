"""Runs that fail on purpose, diagnosed by name from their folders, and problems visible in outputs."""

import json
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from foveal.bundles import save_bundle
from foveal.data import Example, InMemory, tsv
from foveal.errors import NonFiniteError, SpecError
from foveal.inspection import examine, findings_section
from foveal.inspection.doctor._finding import Finding
from foveal.inspection.doctor._findings import findings_page
from foveal.inspection.doctor._from_curves import from_curves, from_unseen
from foveal.inspection.doctor._from_outputs import Written, from_outputs
from foveal.inspection.doctor._history import History
from foveal.inspection.doctor._remedies import Remedies
from foveal.inspection.doctor._watch import Watch
from foveal.models import (
    ClassifierSpec,
    DecoderSpec,
    LanguageModelSpec,
    Seq2SeqSpec,
    SoftmaxSpec,
    TaggerSpec,
    TextEncoderSpec,
)
from foveal.specs import settings, with_setting
from foveal.tasks import (
    ClassificationSpec,
    LanguageModelingSpec,
    TaggingSpec,
    Transduction,
    TransductionSpec,
)
from foveal.tasks.base._prediction import Loss
from foveal.training import Run, Started, StepDone, TrainingSpec, _outputs, fit
from foveal.training.events._events import Probed
from foveal.views import Section, page
from tests.inspection.patients import (
    HEALTHY,
    LABELS,
    LETTERS,
    Patient,
    steps,
    treat,
    writing,
)

pytestmark = pytest.mark.slow

REMEDIES = Remedies(HEALTHY["softmax"].task, TrainingSpec(steps=100))


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip drawing, which other tests cover."""
    monkeypatch.setattr(_outputs, "draw_curves", lambda log, out: None)


def names(findings: Sequence[Finding], severity: str = "alarm") -> set[str]:
    return {finding.name for finding in findings if finding.severity == severity}


# whole runs


def test_a_learning_rate_too_high_is_named_while_the_run_goes_on_and_after_it(
    tmp_path: Path,
) -> None:
    patient = HEALTHY["softmax"]._replace(training=steps(60, learning_rate=1.0))
    treated = treat(patient, tmp_path, every=20)
    assert "learning rate too high" in {finding.name for finding in treated.said}
    found = {finding.name: finding for finding in examine(tmp_path, LETTERS[:40])}
    finding = found["learning rate too high"]
    assert finding.severity == "alarm"
    assert "--set training.learning_rate=" in finding.remedy
    assert finding.drawing


def test_a_run_that_ended_with_a_loss_that_is_no_number_is_examined_too(tmp_path: Path) -> None:
    task = HEALTHY["softmax"].task.build_from(LETTERS)
    assert isinstance(task, Transduction)
    loss = task.loss

    def broken(batch: Any, state: Any = None) -> Loss:
        found = loss(batch, state)
        return replace(found, total=found.total * float("nan"))

    task.loss = broken
    with pytest.raises(NonFiniteError):
        fit(task, task.batches(InMemory(LETTERS), batch_size=16), [], steps(30), tmp_path)
    assert names(examine(tmp_path)) == {"learning rate too high"}


def test_over_fitting_is_named(tmp_path: Path) -> None:
    """A model can memorize words with random outputs, but cannot generalize."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcde", k=4)) for _ in range(60)]
    pairs = tuple(Example(word, "".join(draw.choices("VWXYZ", k=4))) for word in words)
    task = writing(SoftmaxSpec(), hidden_size=64, dropout=0.0)
    encoder = TextEncoderSpec(embedding_size=16, hidden_size=32, dropout=0.0)
    task = replace(task, model=replace(task.model, encoder=encoder), label_smoothing=0.0)
    treat(Patient(task, pairs, steps(160), 0.0), tmp_path, every=1000)
    found = {finding.name: finding for finding in examine(tmp_path, pairs[:40])}
    assert found["over-fitting"].severity == "alarm"
    assert (
        found["over-fitting"].numbers["unseen_loss"] > found["over-fitting"].numbers["first_loss"]
    )


def test_the_same_output_for_everything_is_named(tmp_path: Path) -> None:
    spec = HEALTHY["softmax"].task
    task = spec.build_from(LETTERS)
    with torch.no_grad():
        task.model.decoder.output.bias[5] += 100.0  # one token, again and again
    save_bundle(task, tmp_path)
    found = {finding.name: finding for finding in examine(tmp_path, LETTERS[:40])}
    assert "outputs too long" in found
    assert "repetition" in found
    with torch.no_grad():
        task.model.decoder.output.bias[3] += 1000.0  # the end token, immediately
    save_bundle(task, tmp_path)
    found = {finding.name: finding for finding in examine(tmp_path, LETTERS[:40])}
    assert found["same output"].severity == "alarm"
    assert found["outputs too short"].severity == "alarm"


def test_a_classifier_that_has_one_answer_is_named(tmp_path: Path) -> None:
    task = HEALTHY["classification"].task.build_from(LABELS)
    with torch.no_grad():
        task.model.output.bias[0] = 50.0
    save_bundle(task, tmp_path)
    assert "same output" in names(examine(tmp_path, LABELS[:40]))


def test_examples_are_those_of_the_run_by_default(tmp_path: Path) -> None:
    file = tmp_path / "dev.tsv"
    file.write_text("".join(f"{e.source}\t{e.target}\n" for e in LETTERS[:20]), encoding="utf-8")
    spec = HEALTHY["softmax"].task
    run = Run(task=spec, train=tsv(file), dev=tsv(file), training=TrainingSpec(steps=2))
    run.fit(tmp_path / "run")
    found = examine(tmp_path / "run")
    assert "uniform attention" in names(found)  # the model is almost untrained
    file.unlink()
    assert "uniform attention" not in names(examine(tmp_path / "run"))


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"log\.jsonl"):
        examine(tmp_path)


# curves

Points = Sequence[float]


def history(
    losses: Points, scores: Points = (), *, higher: bool = True, norm: float = 0.5
) -> History:
    """Return a run with these losses, validated at even intervals."""
    found = History(metric="accuracy", higher_is_better=higher)
    for step, loss in enumerate(losses, 1):
        found.add(
            {"event": "step_done", "step": step, "loss": loss, "norm": norm}
            | {"rate": 0.01, "progress": step / len(losses)}
        )
    for number, score in enumerate(scores, 1):
        step = number * len(losses) // len(scores)
        found.add({"event": "evaluated", "step": step, "metrics": {"accuracy": score}})
    return found


FALLING = [3 * 0.98**step + 0.1 for step in range(200)]


def said(found: History, remedies: Remedies = REMEDIES) -> set[str]:
    return {finding.name for finding in from_curves(found, remedies)}


def test_a_run_that_learns_has_nothing_to_be_said_of() -> None:
    assert said(history(FALLING, [50, 70, 80, 85, 88, 90, 91, 90, 91, 92])) == set()


def test_a_run_too_short_to_tell() -> None:
    assert said(history([3.0] * 19)) == set()


def test_what_was_learnt_is_lost() -> None:
    rising = [*FALLING[:100], *reversed(FALLING[:100])]
    assert said(history(rising)) == {"learning rate too high"}
    sampled = Remedies(HEALTHY["softmax"].task, TrainingSpec(steps=1, scheduled_sampling=0.3))
    assert said(history(rising), sampled) == set()


def test_a_loss_above_guessing_and_none_that_moves() -> None:
    assert said(history([2.0, *[4.0] * 40])) == {"learning rate too high"}
    assert said(history([2.0, *[2.01, 1.99] * 30])) == {"stagnation"}


def test_a_lucky_first_batch_is_not_taken_for_what_guessing_costs() -> None:
    draw = random.Random(0)
    noisy = [0.4, *(0.7 - 0.002 * step + draw.gauss(0, 0.15) for step in range(200))]
    assert said(history(noisy)) == set()


def test_scores_that_fall_while_the_loss_falls() -> None:
    falling = [40, 60, 80, 81, 80, 75, 70, 65, 60, 58]
    assert said(history(FALLING, falling)) == {"over-fitting"}
    assert said(history(FALLING, [100 - s for s in falling], higher=False)) == {"over-fitting"}
    noisy = [40, 60, 80, 70, 80, 70, 80, 70, 80, 70]
    assert said(history(FALLING, noisy)) == set()


def test_clipping_that_is_always_active_is_a_note() -> None:
    (finding,) = from_curves(history(FALLING, norm=3.0), REMEDIES)
    assert (finding.name, finding.severity) == ("clipping always active", "note")
    assert "--set training.clip_norm=6" in finding.remedy
    unbounded = Remedies(HEALTHY["softmax"].task, TrainingSpec(steps=1, clip_norm=None))
    assert said(history(FALLING, norm=3.0), unbounded) == set()


def test_unseen_examples_may_cost_more_than_seen_ones_but_not_more_than_guessing() -> None:
    assert [f.name for f in from_unseen(history(FALLING), 3.5, REMEDIES)] == ["over-fitting"]
    assert list(from_unseen(history(FALLING), 2.5, REMEDIES)) == []


# outputs


def outputs(pairs: Sequence[tuple[str, str, str]], accuracy: float | None = None) -> set[str]:
    """Return the findings for sources, references and outputs, each repeated thirty times."""
    rows = [list(map(list, texts)) for texts in zip(*pairs, strict=True)]
    many = Written(*(side * 30 for side in rows), traces=[None] * (30 * len(pairs)))
    task = HEALTHY["softmax"].task.build_from(LETTERS)
    return {finding.name for finding in from_outputs(task, many, accuracy, REMEDIES)}


def test_what_outputs_betray() -> None:
    good = [("ab", "xy", "xy"), ("abc", "xyz", "xyz"), ("b", "y", "y")]
    assert outputs(good, accuracy=1.0) == set()
    assert outputs([(s, r, "xy") for s, r, _ in good]) == {"same output"}
    assert outputs([(s, r, s) for s, r, _ in good]) == {"copied source"}
    assert outputs([(s, s, s) for s, _, _ in good]) == set()
    assert outputs([(s, r, o + "xyxyxyxy") for s, r, o in good]) == {
        "outputs too long",
        "repetition",
    }
    assert outputs([("abc", "wxyz", "w"), ("cba", "zyxw", "z")]) == {"outputs too short"}
    wrong = [("ab", "wxyz", "wabc"), ("cd", "zyxw", "zabc")]
    assert outputs(wrong, accuracy=0.9) == {"exposure bias"}
    assert outputs(wrong, accuracy=0.3) == set()


# messages


SPECS = {
    **{name: patient.task for name, patient in HEALTHY.items()},
    "plain": TransductionSpec(model=Seq2SeqSpec(decoder=DecoderSpec(attention=None, cell="elman"))),
    "summary": ClassificationSpec(
        model=ClassifierSpec(pooling="summary", encoder=TextEncoderSpec(cell="elman"))
    ),
    "elman": LanguageModelingSpec(model=LanguageModelSpec(cell="elman")),
    "tagger": TaggingSpec(model=TaggerSpec(encoder=TextEncoderSpec(cell="elman"))),
}


PARTS = ("encoder forward", "encoder layer 2 backward", "decoder", "decoder layer 1")


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("clip", [None, 1.0])
def test_every_setting_that_a_remedy_names_exists_and_takes_its_value(
    name: str, clip: float | None
) -> None:
    run = Run(task=SPECS[name], train=tsv("x.tsv"), training=TrainingSpec(steps=9, clip_norm=clip))
    remedies = Remedies(run.task, run.training)
    known = {setting.path for setting in settings(run)}
    parts = [part for part in PARTS if f"task.model.{part.split(' ')[0]}.cell" in known] or [
        "decoder"
    ]
    texts = [
        *(remedies.vanishing(part, gated=gated) for part in parts for gated in (False, True)),
        *(remedies.exploding(part) for part in parts),
        *(remedies.narrower(part) for part in parts),
        remedies.slower(),
        remedies.warmer(10.0),
        remedies.attention(),
        remedies.regularized(),
        remedies.stopping(),
        remedies.faster(),
        remedies.looser(3.0),
        remedies.scheduled_sampling(),
        remedies.longer(),
        remedies.fed(),
    ]
    before = {setting.path: setting.value for setting in settings(run)}
    for text in texts:
        flags = re.findall(r"--set ([\w.]+)=([\w.+-]+)", text)
        assert flags, text
        for path, value in flags:
            changed = with_setting(run, path, value)
            assert {s.path: s.value for s in settings(changed)} != before


def test_findings_make_a_page() -> None:
    found = list(from_curves(history([2.0, *[4.0] * 40], norm=3.0), REMEDIES))
    section = findings_section(found)
    assert isinstance(section, Section)
    text = page("Doctor", [section])
    for finding in found:
        assert finding.name in text
        assert finding.cause.split(":")[0] in text
    assert len(section.drawings) == 2
    nothing = findings_section(())
    assert "no problem" in nothing.text
    assert nothing.drawings == ()


def test_the_page_has_a_section_for_each_finding_and_no_drawing_twice() -> None:
    found = list(from_curves(history([2.0, *[4.0] * 40], norm=3.0), REMEDIES))
    text = findings_page("Doctor", [*found, found[0]])
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", text)
    names = [f"{one.severity.capitalize()}: {one.name}" for one in [*found, found[0]]]
    assert headings == [*names, "All findings"]
    assert text.count("<svg") == len({one.drawing for one in found}) == 2
    assert "no problem" in findings_page("Doctor", [])


def test_an_alarm_is_said_once_and_not_before_there_was_time_to_learn() -> None:
    heard: list[Finding] = []
    watch = Watch(heard.append, HEALTHY["softmax"].task, TrainingSpec(steps=100))
    uniform = {"attention/entropy": 1.0, "attention/stuck": 0.3, "attention/total": 1.0}
    grown = {
        "gradient_factor/decoder": 1e4,
        "gradient_rate/decoder": 1.2,
        "gradient_steps/decoder": 50.0,
        "gradient_norms/decoder": [1.0, 1.2],
    }
    watch(Started(step=0, processes=1, parameters=1, metric="wer", higher_is_better=False))
    for step in range(1, 101):
        watch(
            StepDone(
                step=step,
                epoch=1.0,
                progress=step / 100,
                loss=2.0 * 0.98**step,
                tokens=10,
                norm=0.5,
                rate=0.01,
                seconds=1.0,
                parts={},
            )
        )
        if step % 10 == 0:
            before = len(heard)
            watch(Probed(step=step, readings=uniform | (grown if step > 15 else {}), seconds=0.1))
            new = [finding.name for finding in heard[before:]]
            expected = {20: ["exploding gradient"], 30: ["uniform attention"]}
            assert new == expected.get(step, [])


def test_findings_are_plain_data() -> None:
    (finding,) = from_curves(history(FALLING, norm=3.0), REMEDIES)
    data = json.loads(json.dumps(vars(finding)))
    assert Finding(**data) == finding


def test_a_watch_that_fails_says_so_once_and_does_not_end_the_run() -> None:
    heard: list[Finding] = []
    watch = Watch(heard.append, HEALTHY["softmax"].task, TrainingSpec(steps=100))
    without_norms = {
        "gradient_factor/decoder": 1e4,
        "gradient_rate/decoder": 1.2,
        "gradient_steps/decoder": 50.0,
    }
    for step in (1, 2):
        watch(Probed(step=step, readings=without_norms, seconds=0.1))
    assert [finding.name for finding in heard] == ["no diagnosis"]
