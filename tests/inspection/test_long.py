"""The page of a long input: its words are readable, and its tables start with the largest weights."""

import random
import re
from collections import Counter

import pytest

from foveal.attention import AttentionTrace
from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.inspection import explain
from foveal.inspection.explaining._erasure import erased
from foveal.inspection.explaining._explanation_page import explanation_page
from foveal.inspection.explaining._long import (
    FEW,
    LONG,
    MOST_WORDS,
    in_sentences,
    is_long,
    strongest_tables,
)
from foveal.views._sentences import words_of
from tests.inspection.pages import check_page
from tests.tasks.stored import BUNDLES

pytestmark = pytest.mark.slow

WORDS = ("the", "good", "old", "ship", "cat", "never", "ends", "well")
TABLE = re.compile(r"<table>\s*<caption>(.*?)</caption>.*?<tbody>(.*?)</tbody>", re.DOTALL)


def document(size: int) -> list[str]:
    """Return words in sentences of eight to twenty."""
    draw, found = random.Random(0), list[str]()
    while len(found) < size:
        sentence = draw.choices(WORDS, k=draw.randint(8, 20))
        found += [*sentence[:-1], f"{sentence[-1]}."]
    return found


def trace(sources: list[str], num_targets: int = 1) -> AttentionTrace:
    total = sum(range(len(sources)))
    row = tuple(place / total for place in range(len(sources)))
    return AttentionTrace(
        kind="softmax",
        sources=tuple(sources),
        targets=tuple(f"output {n}" for n in range(num_targets)),
        weights=(row,) * num_targets,
    )


def test_words_and_weights_stay_together_in_sentences() -> None:
    words = document(400)
    whole = trace(words)
    found = in_sentences(whole)
    places = [place for part in words_of(found) for place in part]
    assert [found.sources[place] for place in places] == words
    assert [found.weights[0][place] for place in places] == list(whole.weights[0])
    assert all(found.sources[part[-1]].endswith(".") for part in words_of(found))


def test_the_strongest_sentences_are_kept_of_a_very_long_input() -> None:
    words = [
        f"{n}." if n % 10 == 9 else str(n) for n in range(3000)
    ]  # weights grow with the position
    found = in_sentences(trace(words))
    kept = [found.sources[place] for part in words_of(found) for place in part]
    assert kept == words[-MOST_WORDS:]


def test_only_long_inputs_with_few_outputs_are_shown_so() -> None:
    assert is_long(trace(document(LONG + 1)))
    assert not is_long(trace(document(LONG)[:LONG]))
    assert not is_long(trace(document(LONG + 1), num_targets=FEW + 1))


def test_tables_leave_out_what_is_zero() -> None:
    words = document(400)
    row = [0.0] * len(words)
    row[7], row[3] = 0.7, 0.3
    whole = AttentionTrace(
        kind="softmax", sources=tuple(words), targets=("yes",), weights=(tuple(row),)
    )
    (table,) = strongest_tables(whole, caption="Weights")
    assert table.rows == ((words[7], "8", "0.700"), (words[3], "4", "0.300"))


@pytest.mark.parametrize("kind", ["classification", "documents"])
def test_the_page_of_a_document_can_be_read(kind: str) -> None:
    task, words = load_bundle(BUNDLES / "0.1.0" / kind), document(400)
    text = " ".join(words)
    example = Example(text.replace(". ", ".\n") if kind == "documents" else text)
    explanation = explain(task, example)
    change = erased(task, example, [step.token for step in explanation.steps])
    page = explanation_page(explanation, change)
    check_page(page)
    looked = re.search(r"<h2[^>]*>Attention</h2>.*?</svg>", page, re.DOTALL)
    assert looked is not None
    drawn = Counter(re.findall(r'text-anchor="middle">([^<]+)<', looked[0]))
    assert drawn == Counter(words)
    tables = TABLE.findall(page)
    assert len({caption for caption, _ in tables}) == len(tables)
    shown = {caption: rows.count("<tr>") for caption, rows in tables}
    assert shown["Weights: largest"] == 20
    assert max(shown.values()) <= 400
    assert "nothing: the token is unknown" not in page


def test_bars_and_curves_are_never_wider_than_a_page() -> None:
    task = load_bundle(BUNDLES / "0.1.0" / "transduction")
    page = explanation_page(explain(task, Example("edcba")))
    assert ".scroll svg.fits{max-width:100%;height:auto}" in page
    bars = re.search(r'<svg[^>]*aria-label="Probability of the candidate tokens"[^>]*>', page)
    assert bars is not None
    assert 'class="foveal fits"' in bars[0]
    assert "viewBox" in bars[0]
