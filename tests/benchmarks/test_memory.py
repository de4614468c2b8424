"""Memory and location: scoring some cases keeps the figures of the others."""

from pathlib import Path

from benchmarks.lectures import _memory
from benchmarks.results import Results, Row


def test_scores_of_other_cases_are_kept(tmp_path: Path) -> None:
    row = Row(name="copy, shift: 20", value=100.0, unit="%", seeds=(1,))
    made = Results.here("earlier").with_rows([row])
    file = tmp_path / "memory.json"
    made.save(file)
    _memory.score(("sort_point",), (1,), tmp_path / "no runs", tmp_path)
    assert Results.load(file).rows == (row,)


def test_numbers_to_sort_are_different_and_end_with_a_mark() -> None:
    for example in _memory.tests("sort_point", 100):
        assert isinstance(example.source, str)
        *numbers, mark = example.source.split()
        assert mark == "."
        assert len(set(numbers)) == 100
        assert example.target == " ".join([*sorted(numbers), "."])
