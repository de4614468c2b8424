"""Problems in a corpus are found, counted and located; a correct corpus causes no findings."""

import random
from pathlib import Path

import pytest

from foveal.data import Example, SentencePieceSpec, WhitespaceSpec, tsv
from foveal.data._example import Where
from foveal.planning import check_data
from foveal.planning._checks import Finding, Findings

pytestmark = pytest.mark.slow


def words(num: int, seed: int = 0) -> list[Example]:
    """Return distinct words and the same words in capitals."""
    draw = random.Random(seed)
    made = {"".join(draw.choices("abcde", k=8)): None for _ in range(2 * num)}
    return [Example(word, word.upper()) for word in list(made)[:num]]


def only(findings: Findings) -> Finding:
    (found,) = findings.findings
    return found


def test_nothing_to_complain_of() -> None:
    everything = words(300)
    found = check_data(everything[:200], everything[200:250], everything[250:])
    assert found.findings == ()
    assert found.lines() == []
    assert found.num_examples == {"train": 200, "dev": 50, "test": 50}
    assert found.share_compared == 1


def test_duplicates_and_conflicts_in_train() -> None:
    train = [*words(50), *words(3), Example("aaa", "x"), Example("aaa", "y"), Example("aaa", "z")]
    duplicates, conflicts = check_data(train).findings
    assert (duplicates.kind, duplicates.num) == ("duplicates", 3)
    assert duplicates.places == tuple(Where("train", line) for line in (51, 52, 53))
    assert duplicates.sentence == "3 of 56 examples are exact duplicates of an earlier example."
    assert (conflicts.kind, conflicts.num) == ("conflicts", 1)
    assert conflicts.places[0].line in (55, 56)


def test_features_are_a_part_of_the_question() -> None:
    train = [Example("go", "went", "V;PST"), Example("go", "goes", "V;PRS")]
    assert check_data(train).findings == ()


def test_what_dev_and_test_share_with_others() -> None:
    train, dev, test = words(60)[:40], words(60)[35:50], words(60)[45:]
    leaks = check_data(train, dev, test).findings
    assert [(found.kind, found.corpus, found.num) for found in leaks] == [
        ("leak", "dev", 5),
        ("leak", "test", 5),
    ]
    assert "are also in train" in leaks[0].sentence
    assert "are also in dev" in leaks[1].sentence
    assert leaks[0].places[0] == Where("dev", 1)
    changed = [Example(example.source, "A") for example in train[:3]]
    seen = only(check_data(train, changed))
    assert (seen.kind, seen.num) == ("seen_sources", 3)


def test_mixed_normal_forms() -> None:
    composed = [Example(f"\u00e9 {n}", "x") for n in range(9)]
    decomposed = [Example(f"e\u0301 s{n}", "x") for n in range(2)]
    found = only(check_data([*composed, *decomposed]))
    assert (found.kind, found.num) == ("normalization", 2)
    assert "9 composed, 2 decomposed" in found.sentence
    assert "NFC" in found.remedy
    assert found.places == (Where("train", 10), Where("train", 11))
    assert check_data(composed).findings == ()
    assert check_data(decomposed).findings == ()
    kinds = [found.kind for found in check_data(composed, decomposed).findings]
    assert kinds == ["unseen", "normalization"]  # across corpora too


def test_empty_sides() -> None:
    train = [*words(10), Example(" ", "x"), Example("abc", ""), Example("add", None)]
    source, target = check_data(train).findings
    assert (source.kind, source.num, source.places) == ("empty", 1, (Where("train", 11),))
    assert (target.kind, target.num, target.places) == ("empty", 1, (Where("train", 12),))
    assert only(check_data([])).sentence == "the file has no examples."


def test_outliers_of_length() -> None:
    train = [*words(300), Example("a" * 500, "x"), Example("ab", "y" * 400)]
    source, target = check_data(train).findings
    assert (source.kind, source.num, source.places) == ("lengths", 1, (Where("train", 301),))
    assert "more than 40 characters" in source.sentence
    assert (target.kind, target.num, target.places) == ("lengths", 1, (Where("train", 302),))


def test_symbols_that_train_does_not_have() -> None:
    train = [Example("abc", "k ae"), Example("cab", "ae k")]
    dev = [Example("abx", "k ae"), Example("ca", "k a"), Example("cb", "ae")]
    found = only(check_data(train, dev))
    assert (found.kind, found.corpus, found.num) == ("unseen", "dev", 1)
    assert "source token that the training set does not have: 'x'" in found.sentence
    source, target = check_data(train, dev, target_tokenizer=WhitespaceSpec()).findings
    assert source == found
    assert target.places == (Where("dev", 2),)


def test_any_tokenizer_can_say_what_a_symbol_is() -> None:
    spec = SentencePieceSpec(num_pieces=300).trained_on(["some words"] * 9)
    train = [Example("some words", "x")]
    assert check_data(train, train[:0], source_tokenizer=spec).findings[0].corpus == "dev"


def test_above_a_size_a_sample_is_compared() -> None:
    """Duplicates stay together in the sample, so their number can be estimated."""
    train = [*words(4000), *words(1000)]
    exact, estimate = check_data(train), check_data(train, max_held=600)
    assert only(exact).num == 1000
    assert estimate.share_compared < 0.25
    assert only(estimate).kind == "duplicates"
    assert 500 < only(estimate).num < 1500
    assert estimate.lines()[-1].startswith(
        "The number of equal examples is an estimate from one in "
    )
    assert len(exact.lines()) == 1
    again = check_data(train, max_held=600)
    assert again == estimate  # the sample is deterministic


def test_only_the_first_examples_of_a_large_corpus_are_read() -> None:
    train, dev = [Example("ab", "x"), Example("cd", "y"), Example("ef", "z")], [Example("ef", "z")]
    found = check_data(train, dev, max_train=2)
    assert found.num_examples == {"train": 2, "dev": 1}
    said = found.lines()
    assert "token that the first 2 training examples do not have: " in said[0]
    assert said[-1].startswith("train: only the first 2 examples were checked")
    assert check_data(train, dev, max_train=3) == check_data(train, dev)


def test_places_are_those_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("one\tx\n", encoding="utf-8")
    (tmp_path / "b.tsv").write_text("\none\tx\n", encoding="utf-8")
    found = only(check_data(tsv([tmp_path / "a.tsv", tmp_path / "b.tsv"])))
    assert found.places == (Where(str(tmp_path / "b.tsv"), 2),)


@pytest.mark.parametrize("num", [1, 2])
def test_every_finding_is_a_sentence_and_a_remedy(num: int) -> None:
    train = [Example("", "x"), Example("a" * 900, "x"), *words(200), *words(9)] * num
    dev = [Example("é", "x"), Example("e\u0301", "y"), *words(5)]
    findings = check_data(train, dev).findings
    assert len({found.kind for found in findings}) >= 6
    for found in findings:
        assert found.sentence.endswith(".")
        assert found.remedy.endswith(".")
        assert found.remedy[0].isupper()
        assert 0 < len(found.places) <= 3
