"""Pairs of texts: two text columns, a label, and the batches made from them."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings, strategies as st

from foveal.data import END, Encoded, Example, TabSeparated, TextPair, json_lines, open_source, tsv
from foveal.data._batches import collate_documents, collate_text_pairs
from foveal.data._example import Where
from foveal.errors import DataError, ShapeError
from foveal.planning import infer_task

IDS = st.lists(st.integers(4, 2**31 - 1), min_size=1, max_size=5)
LABELS = ("entailment", "neutral", "contradiction")


def lines(number: int = 90) -> list[tuple[str, str, str]]:
    """Two sentences and a label; one first sentence appears three times, as in SNLI."""
    return [
        (f"a man number {n // 3} rides", f"someone {n} is outside", LABELS[n % 3])
        for n in range(number)
    ]


def written(path: Path, rows: list[tuple[str, ...]]) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_two_texts_are_one_source(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", [("1", " It rains. ", "It is wet.", "yes")])
    (example,) = tsv(path, source=1, second=2, target=3)
    assert example.source == TextPair("It rains.", "It is wet.")
    assert str(example.source) == "It rains.\tIt is wet."
    record = {"premise": "It\train s.", "hypothesis": ["It", "is", "wet"], "label": "yes"}
    (tmp_path / "a.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    (example,) = json_lines(
        tmp_path / "a.jsonl", source="premise", second="hypothesis", target="label"
    )
    assert example.source == TextPair("It\train s.", "It is wet")
    assert str(example.source) == "It rain s.\tIt is wet"
    with pytest.raises(DataError, match=r"a.tsv, line 4: one text, expected two, in 'alone'"):
        Example("alone", where=Where("a.tsv", 4)).input_as(TextPair)
    with pytest.raises(DataError, match="2 columns, expected at least 3"):
        list(tsv(written(tmp_path / "b.tsv", [("a", "b")]), second=2))


@pytest.mark.parametrize(
    ("order", "expected"), [((0, 1, 2), (0, 1, 2)), ((2, 0, 1), (1, 2, 0))], ids=["last", "first"]
)
def test_two_texts_and_a_label_are_recognized(
    order: tuple[int, int, int], expected: tuple[int, int, int], tmp_path: Path
) -> None:
    path = written(tmp_path / "a.tsv", [tuple(row[n] for n in order) for row in lines()])
    opened = open_source(path)
    source = opened.source
    assert isinstance(source, TabSeparated)
    assert (source.source, source.second, source.target) == expected
    assert "second text in the" in opened.reason
    found = infer_task(source)
    assert found.task == "pair_classification"
    assert found.source.kind == "whitespace"
    assert found.reasons[0] == "pair classification: two texts and a label, 3 different labels"


def test_names_in_the_first_line_say_what_is_a_pair(tmp_path: Path) -> None:
    rows = [("pair_ID", "sentence_A", "sentence_B", "entailment_judgment"), ("1", "a", "b", "no")]
    source = open_source(written(tmp_path / "sick.txt", rows)).source
    assert [example.source for example in source] == [TextPair("a", "b")]
    record = {"sentence1": "a", "sentence2": "b", "gold_label": "no"}
    (tmp_path / "a.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    opened = open_source(tmp_path / "a.jsonl")
    assert [(example.source, example.target) for example in opened.source] == [
        (TextPair("a", "b"), "no")
    ]
    assert (
        opened.reason
        == "JSON objects: texts in 'sentence1' and 'sentence2', the target in 'gold_label'"
    )


def test_other_files_of_three_columns_stay_what_they_are(tmp_path: Path) -> None:
    inflected = [(f"word{n}", f"words{n}", "N;PL") for n in range(80)]
    source = open_source(written(tmp_path / "inflection.tsv", inflected)).source
    assert isinstance(source, TabSeparated)
    assert (source.second, source.features, source.target) == (None, 2, 1)
    noted = [(f"guten Tag {n}", f"good day {n}", f"note {n % 50}") for n in range(80)]
    source = open_source(written(tmp_path / "translation.tsv", noted)).source
    assert isinstance(source, TabSeparated)
    assert (source.second, source.target) == (None, 1)


@given(st.lists(st.tuples(IDS, IDS, st.integers(0, 9)), min_size=1, max_size=5))
@settings(deadline=None)
def test_a_batch_of_pairs(drawn: list[tuple[list[int], list[int], int]]) -> None:
    batch = collate_text_pairs([Encoded(a, [label], second=b) for a, b, label in drawn])
    for row, (a, b, label) in enumerate(drawn):
        assert batch.first[row][batch.first_mask[row]].tolist() == a
        assert batch.second[row][batch.second_mask[row]].tolist() == b
        assert batch.labels[row] == label
        assert not batch.second[row][~batch.second_mask[row]].any()
    assert batch.first.shape[1] == max(len(first) for first, _, _ in drawn)
    assert batch.second.shape[1] == max(len(second) for _, second, _ in drawn)


def test_a_pair_without_a_label_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"must be one label, got 0 labels for example 7"):
        collate_text_pairs(
            [Encoded([4], [0], second=[5], index=6), Encoded([4], second=[5], index=7)]
        )


@given(st.lists(st.lists(IDS, min_size=1, max_size=4), min_size=1, max_size=4))
@settings(deadline=None)
def test_a_batch_of_documents(drawn: list[list[list[int]]]) -> None:
    flat = [[number for words in document for number in (*words, END)] for document in drawn]
    batch = collate_documents([Encoded(row, [n]) for n, row in enumerate(flat)])
    most = max(map(len, drawn)), max(len(words) for document in drawn for words in document)
    assert batch.tokens.shape == batch.mask.shape == (len(drawn), *most)
    for row, document in enumerate(drawn):
        for place, words in enumerate(document):
            assert batch.tokens[row, place][batch.mask[row, place]].tolist() == words
        assert not batch.mask[row, len(document) :].any()
    assert torch.equal(batch.tokens != 0, batch.mask)
    assert batch.labels.tolist() == list(range(len(drawn)))
