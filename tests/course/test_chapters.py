"""Every chapter of the course runs, its exercises are checked, and its page and its notebook are of today's source."""

import json
import re
from pathlib import Path

import pytest

from course._chapter import ChapterError, Role, chapters, read_chapter
from course._notebooks import NOTEBOOKS, notebook
from course._pages import page
from course._running import run
from course._stored import stored

HEADINGS = (
    "The equation",
    "From scratch",
    "With Foveal",
    "Break it",
    "Exercises",
    "Quiz",
    "Further reading",
)
MIN_EXERCISES, NUM_QUESTIONS = 3, 5
MAX_BYTES = 400_000  # of the outputs of a chapter, which are in the repository

every_chapter = pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)


@every_chapter
@pytest.mark.timeout(300)
def test_runs_at_reduced_size_and_checks_find_unsolved_exercises(path: Path) -> None:
    run(read_chapter(path), reduced=True, check_starts=True)


@every_chapter
def test_has_all_parts_of_a_chapter(path: Path) -> None:
    chapter = read_chapter(path)
    found = re.findall(r"^## (.+)$", chapter.text, re.MULTILINE)
    assert [heading for heading in found if heading in HEADINGS] == list(HEADINGS)
    roles = [block.role for block in chapter.blocks]
    exercises = [
        roles[number : number + 3] for number, role in enumerate(roles) if role is Role.EXERCISE
    ]
    assert len(exercises) >= MIN_EXERCISES
    assert all(each == [Role.EXERCISE, Role.CHECK, Role.SOLUTION] for each in exercises)
    assert Role.PREDICT in roles
    assert len(chapter.questions) == NUM_QUESTIONS
    assert len({question.right for question in chapter.questions}) > 1
    assert all(question.reason for question in chapter.questions)
    assert not re.findall(r"^[A-Z0-9]+$", chapter.text, re.MULTILINE), "A paragraph is missing."


@every_chapter
def test_has_outputs_of_this_code_with_a_captioned_picture(path: Path) -> None:
    chapter = read_chapter(path)
    outputs = stored(chapter)
    assert outputs is not None, f"Run python -m course run {path.name[:2]}."
    captioned = [bool(block.caption) for block in chapter.blocks]
    assert captioned == [bool(output.svg) for output in outputs]
    assert any(captioned)
    assert sum(len(output.svg) + len(output.text) for output in outputs) < MAX_BYTES
    assert page(chapter, outputs).count("<figure") == sum(captioned)


@every_chapter
def test_notebook_is_made_from_this_source(path: Path) -> None:
    written = (NOTEBOOKS / f"{path.stem}.ipynb").read_text(encoding="utf-8")
    assert written == notebook(read_chapter(path)), "Run python -m course notebooks."
    assert all(not cell.get("outputs") for cell in json.loads(written)["cells"])


def test_there_is_no_notebook_without_a_chapter() -> None:
    assert {path.stem for path in NOTEBOOKS.glob("*")} == {path.stem for path in chapters()}


CHAPTER = """# 99. A chapter

```python
steps = 50  # reduced: 2
steps
```

```python exercise
def double(x):
    return x
```

```python check
assert double(2) == 4
```

```python solution
def double(x):
    return 2 * x
```

1. Which is right?

    - [ ] this
    - [x] that, over
      two lines

    Answer: Because
    it is.
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "99_chapter.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_reduced_run_uses_reduced_values(tmp_path: Path) -> None:
    chapter = read_chapter(written(tmp_path, CHAPTER))
    assert run(chapter, reduced=False)[0].text == "50\n"
    assert run(chapter, reduced=True, check_starts=True)[0].text == "2\n"
    assert "reduced" not in notebook(chapter)


def test_the_quiz_is_read(tmp_path: Path) -> None:
    [question] = read_chapter(written(tmp_path, CHAPTER)).questions
    assert question.options == ("this", "that, over two lines")
    assert (question.letter, question.reason) == ("b", "Because it is.")


@pytest.mark.parametrize(
    ("old", "new"),
    [("return 2 * x", "return 3 * x"), ("double(2) == 4", "double(2) in (2, 4)")],
    ids=["a wrong solution", "a check that holds for the start"],
)
def test_wrong_exercises_fail(tmp_path: Path, old: str, new: str) -> None:
    chapter = read_chapter(written(tmp_path, CHAPTER.replace(old, new)))
    with pytest.raises(AssertionError):
        run(chapter, reduced=True, check_starts=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [("python check", "python cheque"), ("- [ ] this", "- [x] this"), ("# 99", "99")],
    ids=["role", "two right options", "title"],
)
def test_a_chapter_of_another_form_is_refused(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(ChapterError):
        read_chapter(written(tmp_path, CHAPTER.replace(old, new)))
