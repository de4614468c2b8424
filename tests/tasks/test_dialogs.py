"""Dialogs: files of turns, their examples, and a model that answers."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from foveal.data import Dialog, Document, Example, Turn, dialogs, open_source
from foveal.data._source import Position
from foveal.errors import DataError
from foveal.metrics import distinct_n
from foveal.models import DocumentEncoderSpec, HierarchicalSpec
from foveal.planning._recommending_dialogs import recommend_dialogs
from foveal.tasks import TransductionSpec
from recipes import dialog

FILM = [["user", "any films ?"], ["bot", "which city ?"], ["user", "oslo"], ["bot", "up at eight"]]


def written(folder: Path, *records: Any) -> Path:
    path = folder / "dialogs.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_every_turn_of_a_speaker_is_a_response(tmp_path: Path) -> None:
    named = [{"speaker": speaker, "text": text} for speaker, text in FILM]
    path = written(tmp_path, {"turns": FILM}, {"turns": named})
    found = list(dialogs(path, speaker="bot"))
    assert [example.target for example in found] == ["which city ?", "up at eight"] * 2
    assert found[1].source == Dialog(tuple(Turn(*turn) for turn in FILM[:3]))
    assert found[0].where != found[2].where
    (last, _) = dialogs(path, max_turns=1)
    assert (str(last.source), last.target) == ("user: oslo", "up at eight")


def test_a_response_field_is_the_target(tmp_path: Path) -> None:
    path = written(tmp_path, {"turns": FILM[:1], "response": "which city ?"})
    (found,) = dialogs(path, speaker="bot")
    assert (str(found.source), found.target) == ("user: any films ?", "which city ?")


def test_reading_resumes_in_the_middle_of_a_dialog(tmp_path: Path) -> None:
    source = dialogs(written(tmp_path, {"turns": FILM}, {"turns": FILM}), speaker="bot")
    (shard,) = source.shards()
    cursor = source.open(shard)
    for _ in range(3):
        next(cursor)
    place = Position.from_data(json.loads(json.dumps(cursor.position().to_data())))
    assert list(source.open(shard, place)) == list(cursor) == list(source)[3:]


def test_the_format_of_the_file_is_recognized(tmp_path: Path) -> None:
    opened = open_source(written(tmp_path, {"turns": FILM}))
    assert opened.source == dialogs(tmp_path / "dialogs.jsonl", speaker="bot")
    assert "each turn of this speaker is a response" in opened.reason
    opened = open_source(written(tmp_path, {"turns": FILM}, {"turns": FILM[:3]}))
    assert opened.source == dialogs(tmp_path / "dialogs.jsonl")
    opened = open_source(written(tmp_path, {"turns": FILM[:3], "response": "up"}))
    assert opened.reason.endswith('the response in "response"')


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"turns": []}, "expected a list of turns"),
        ({"turns": [["user"]]}, "a turn must have a speaker and a text"),
        ({"turns": [["user", 3]]}, "a turn must have a speaker and a text"),
        ({"turns": FILM[:1]}, "expected at least two turns"),
    ],
)
def test_wrong_dialogs_are_errors(tmp_path: Path, record: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"line 1: {message}"):
        list(dialogs(written(tmp_path, record)))


def test_the_written_form_is_parsed() -> None:
    given = Dialog((Turn("user", "at 8: ok ?"), Turn("", "yes")))
    assert Dialog.parse(str(given)) == given
    assert Example(given).input_as(Document).sentences == ("user: at 8: ok ?", "yes")
    assert given.group == Dialog(given.turns[:1]).group


def test_dialogs_get_a_model_with_two_levels() -> None:
    records = islice(dialog.facts("dev"), 40)
    examples = [
        Example(Dialog(tuple(Turn(*turn) for turn in record["turns"])), record["response"])
        for record in records
    ]
    found = recommend_dialogs(examples)
    assert isinstance(found.task, TransductionSpec)
    assert isinstance(found.task.model.encoder, DocumentEncoderSpec)
    assert isinstance(found.task.model.decoder.attention, HierarchicalSpec)
    assert {"model.encoder", "model.encoder.words.hidden_size"} <= {r.path for r in found.reasons}
    task = found.task.build_from(examples)
    assert task.symbols(examples[0])[:2] == ["user:", "my"]


def test_generated_answers_are_in_their_dialogs() -> None:
    for record in islice(dialog.facts("dev"), 12):
        *_, question = record["turns"]
        topic = question[1].split()[-2]
        fact = record["turns"][-1 - 2 * record["distance"]][1]
        assert fact.startswith(f"my {topic} is ")
        assert record["response"] == fact.replace("my", "your", 1)


def test_distinct_n_counts_different_n_grams() -> None:
    assert distinct_n(["a b a", "a b"], 1) == pytest.approx(40)
    assert distinct_n(["a b a", "a b"], 2) == pytest.approx(100 * 2 / 3)
    assert distinct_n(["a"], 2) == 0
