"""Gold links are read in the convention of their file, or refused with the number of the wrong line."""

import gzip
from pathlib import Path

import pytest

from examples.support import DATA
from foveal.data import tsv
from foveal.data.formats._links import Gold, read_fast_align, read_gold
from foveal.data.tokenizers._words import split_words
from foveal.errors import DataError


def written(folder: Path, text: str) -> str:
    path = folder / "gold"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_links_alone_counted_from_0(tmp_path: Path) -> None:
    found = read_gold(written(tmp_path, "0-0 1-2\n\n2-1\n"), [(2, 3), (1, 1), (3, 2)])
    assert found.gold[0] == Gold(frozenset({(0, 0), (1, 2)}), frozenset({(0, 0), (1, 2)}))
    assert found.gold[1] == Gold(frozenset(), frozenset())
    assert found.gold[2].sure == {(2, 1)}
    assert "from 0" in found.reason


def test_a_number_that_is_too_high_means_that_words_are_counted_from_1(tmp_path: Path) -> None:
    found = read_gold(written(tmp_path, "1-2 2p3 1?1\n"), [(2, 3)])
    assert found.gold[0].sure == {(0, 1)}
    assert found.gold[0].possible == {(0, 1), (1, 2), (0, 0)}
    assert "from 1" in found.reason
    assert read_gold(written(tmp_path, "1-1\n"), [(3, 3)]).gold[0].sure == {(1, 1)}
    assert read_gold(written(tmp_path, "1-1\n"), [(3, 3)], first=1).gold[0].sure == {(0, 0)}


def test_links_after_their_pair(tmp_path: Path) -> None:
    """The format of XL-WA, which `foveal align` also writes."""
    text = "a small house .\tuna casetta .\t0-0 1-1 2-1 3-2\nno links\there\t\n"
    found = read_gold(written(tmp_path, text), [(4, 3), (2, 1)])
    assert found.gold[0].sure == {(0, 0), (1, 1), (2, 1), (3, 2)}
    assert found.gold[1].possible == frozenset()


@pytest.mark.parametrize(
    ("text", "sizes", "said"),
    [
        ("0-0\n", [(1, 1), (1, 1)], "1 lines of links for 2 pairs"),
        ("0-0\n0-a\n", [(1, 1), (1, 1)], "line 2"),
        ("0-0 0-\n", [(1, 1)], "'0-'"),
        ("0-5\n", [(1, 1)], "got the link 0-5, but the pair has 1 source and 1 target"),
        ("a\tb\n", [(1, 1)], "two columns"),
        ("0-" + "9" * 50, [(1, 1)], "links must be pairs"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, text: str, sizes: list[tuple[int, int]], said: str
) -> None:
    with pytest.raises(DataError, match=said):
        read_gold(written(tmp_path, text), sizes)


def test_counted_from_1_a_0_is_out_of_the_pair(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="counted from 1"):
        read_gold(written(tmp_path, "0-1\n"), [(1, 1)], first=1)


def test_pairs_with_bars(tmp_path: Path) -> None:
    path = tmp_path / "pairs.gz"
    path.write_bytes(gzip.compress(b"a b ||| x\nc ||| y z\n"))
    pairs = list(read_fast_align(str(path)) or ())
    assert [(pair.source, pair.target) for pair in pairs] == [("a b", "x"), ("c", "y z")]
    assert read_fast_align(written(tmp_path, "a b\tx\n")) is None
    with pytest.raises(DataError, match="line 2"):
        list(read_fast_align(written(tmp_path, "a ||| b\nc d\n")) or ())


def test_the_japanese_gold_file_fits_its_pairs() -> None:
    pairs = DATA / "align_gold_jaen/jaen.src-tgt"
    if not pairs.exists():
        pytest.skip("the data set is not here")
    examples = list(read_fast_align(str(pairs)) or ())
    sizes = [(len(split_words(e.text)), len(split_words(e.target or ""))) for e in examples]
    found = read_gold(str(pairs.with_suffix(".gold")), sizes)
    assert len(found.gold) == 582
    assert "from 1" in found.reason
    assert (0, 1) in found.gold[0].sure  # 1-2 in the file


def test_an_xlwa_file_is_pairs_and_gold_at_once() -> None:
    path = DATA / "align_xlwa/it/dev.tsv"
    if not path.exists():
        pytest.skip("the data set is not here")
    examples = list(tsv(path, alignment=2))
    sizes = [(len(split_words(e.text)), len(split_words(e.target or ""))) for e in examples]
    found = read_gold(str(path), sizes)
    assert sum(len(gold.sure) for gold in found.gold) == 1980  # the number in its README
    assert "from 0" in found.reason
