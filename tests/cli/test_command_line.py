"""docs/command_line.md matches the parsers of the commands."""

import re
import shlex

import pytest

from foveal.cli._main import COMMANDS, main
from scripts.command_line import BETWEEN, EXAMPLES, PAGE, actions_of, filled, parser_of, written

MOST_CHARACTERS = 88  # per line of a code block


def test_the_page_agrees_with_the_parsers() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert BETWEEN.search(page)
    assert page == filled(page), "Run python scripts/command_line.py."


def test_a_changed_page_is_noticed() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page.replace("`--beam-size INT`", "`--beam INT`")) != page.replace(
        "`--beam-size INT`", "`--beam INT`"
    )


def test_code_blocks_are_narrow() -> None:
    blocks = re.findall(r"^```\w+\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) == 2 * len(COMMANDS)
    assert max(len(line) for block in blocks for line in block.splitlines()) <= MOST_CHARACTERS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_has_a_placeholder_and_a_description(name: str) -> None:
    for action in actions_of(parser_of(name)):
        assert re.match(r"[A-Z`]", action.help or ""), written(action)
        assert "None" not in written(action)
        assert "STR" not in written(action)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_are_valid(name: str) -> None:
    for example in EXAMPLES[name]:
        program, command, *words = shlex.split(example)
        assert (program, command) == ("foveal", name)
        parser_of(name).parse_args(words)


def test_a_wrong_example_is_refused() -> None:
    with pytest.raises(SystemExit):
        parser_of("predict").parse_args(["runs/x", "--beams", "3"])


@pytest.mark.parametrize("words", [["serve"], ["align", "runs/x"], ["prepare", "--out", "x"]])
def test_an_empty_list_of_files_or_models_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert re.match(
        rf"foveal {words[0]}: expected at least one (MODEL|FILE), got none\. Add --help",
        capsys.readouterr().err,
    )
