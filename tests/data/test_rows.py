"""Rows in memory: pairs, mappings, examples, pandas frames and Hugging Face datasets."""

from typing import Any

import datasets
import numpy as np
import pandas as pd
import pytest

from foveal.data import Example, TextPair
from foveal.data.formats._rows import read_rows
from foveal.errors import DataError

PAIRS = [("cat", "k a t"), ("dog", "d o g"), ("a, b", "x")]
EXAMPLES = tuple(Example(*pair) for pair in PAIRS)
RECORDS = [{"word": source, "pron": target} for source, target in PAIRS]


@pytest.mark.parametrize(
    "rows",
    [
        PAIRS,
        [list(pair) for pair in PAIRS],
        iter(PAIRS),
        EXAMPLES,
        RECORDS,
        [{"id": 7, "pron": row["pron"], "word": row["word"]} for row in RECORDS],
        pd.DataFrame(RECORDS),
        pd.DataFrame(RECORDS).set_index(pd.Index([5, 6, 7])),
        datasets.Dataset.from_list(RECORDS),
        datasets.Dataset.from_pandas(pd.DataFrame(RECORDS)),
        datasets.Dataset.from_list(RECORDS).to_iterable_dataset(),
    ],
)
def test_all_kinds_of_rows_are_the_same_examples(rows: Any) -> None:
    assert read_rows(rows).examples == EXAMPLES


def test_columns_are_told_by_name_or_given() -> None:
    frame = pd.DataFrame({"a": ["x y", "z"], "b": [1, 2], "c": ["p", "q"]})
    found = read_rows(frame)
    assert found.reason == "2 rows: text in 'a', target in 'b'"
    assert found.examples[0] == Example("x y", "1")
    given = read_rows(frame, {"source": "c", "target": "a"})
    assert given.examples[0] == Example("p", "x y")
    assert read_rows(frame, {"target": None}).examples[0] == Example("x y")
    pair = read_rows([{"premise": "a", "hypothesis": "b\tc", "label": True}]).examples[0]
    assert pair == Example(TextPair("a", "b\tc"), "true")


def test_labels_of_a_dataset_have_names() -> None:
    features = datasets.Features(
        {
            "tokens": datasets.Sequence(datasets.Value("string")),
            "tags": datasets.Sequence(datasets.ClassLabel(names=["O", "LOC"])),
            "label": datasets.ClassLabel(names=["neg", "pos"]),
        }
    )
    rows = {"tokens": [["In", "Rome"]], "tags": [[0, 1]], "label": [1]}
    data = datasets.Dataset.from_dict(rows, features=features)
    assert read_rows(data).examples[0] == Example("In Rome", "pos")
    assert read_rows(data, {"target": "tags"}).examples[0] == Example("In Rome", "O LOC")
    unknown = datasets.Dataset.from_dict(rows | {"label": [-1]}, features=features)
    with pytest.raises(DataError, match=r"row 1: label -1, expected 0 to 1. Remove rows"):
        read_rows(unknown)


def test_values_of_numpy() -> None:
    rows = [(np.str_("a"), np.int64(3)), ("b", np.bool_(True)), ("c", 1.5), ("d",), ("e", None)]
    targets = [example.target for example in read_rows(rows).examples]
    assert targets == ["3", "true", "1.5", None, None]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            {"train": RECORDS},
            r"expected rows, got a dict with 'train'.*pass one of them: data\['train'\]",
        ),
        (datasets.DatasetDict({"train": datasets.Dataset.from_list(RECORDS)}), "got a dict with"),
        (pd.DataFrame({"text": ["a", None], "label": [1, 2]}), "row 2: 'text' must be text"),
        (pd.DataFrame({"text": ["a", "b"], "label": [1, np.nan]}), "row 2: 'label' must.*dropna"),
        ([("a", "b"), ("a", "b", "c")], r"row 2: expected a pair \(source, target\), a dict or"),
        ([{"text": "a", "label": "b"}, {"text": "c"}], "row 2: no column 'label', got 'text'"),
        ([("a", {"b": 1})], "row 1: the target must be text"),
        (7, "expected rows, got int"),
        ([], "expected some hundreds of rows, got none"),
    ],
)
def test_a_wrong_row_is_named(rows: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_rows(rows)
