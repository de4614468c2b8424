"""The C library answers like the Python runtime, natively and in WebAssembly, and damaged files do it no harm."""

import hashlib
import itertools
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from foveal.bundles import save_bundle
from foveal.data import CharacterSpec, Example, FeaturesSpec, WhitespaceSpec
from foveal.data.tokenizers._base import AbstractTokenizerSpec
from foveal.export import ExportOptions, export_bundle
from foveal.export._storage import Storage
from foveal.runtime import Model, Source, load
from tests.export.plain_variants import PLAIN
from tests.export.variants import VARIANTS, WORDS, task_of
from tests.runtimes.c_library import LIBRARY, ROOT, ask, ask_wasm, build, run
from tests.runtimes.exports import check_equal, export_inflection

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.slow

TEXTS = (*WORDS, "", "ab" * 13)
STORAGES: tuple[Storage, ...] = ("float32", "int8", "half")
MOST_WASM = 150_000


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command."""
    return build("all", tmp_path_factory.mktemp("native"), "cc") / "foveal-run"


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the library and the command, with sanitizers."""
    return build("checked", tmp_path_factory.mktemp("sanitized"), "cc") / "checked"


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The WebAssembly module."""
    folder = tmp_path_factory.mktemp("wasm")
    return build("wasm", folder, "clang", "wasm-ld", "node") / "foveal.wasm"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One exported model."""
    place = tmp_path_factory.mktemp("model")
    exported("latent hard", place)
    return place / "export"


def exported(name: str, place: Path, storage: Storage = "float32") -> Model:
    """Export a small model with its plain file."""
    save_bundle(task_of(VARIANTS[name]), place / "run")
    options = ExportOptions(storage=storage, plain=True)
    export_bundle(place / "run", place / "export", TEXTS, options)
    return load(place / "export")


@pytest.mark.parametrize(
    ("name", "storage"), [*zip(PLAIN, itertools.cycle(STORAGES)), ("latent hard", "int8")]
)
def test_every_kind_of_model_answers_like_python(
    name: str, storage: Storage, tool: Path, checked: Path, tmp_path: Path
) -> None:
    model = exported(name, tmp_path, storage)
    sources, nbest = [*map(Source, TEXTS)], VARIANTS[name].beam_size
    right = model.predict(sources, nbest=nbest, attention=True)
    for command in (tool, checked / "foveal-run"):
        found = ask(command, model.path, sources, "--nbest", str(nbest))
        for ours, theirs in zip(found, right, strict=True):
            check_equal(ours, theirs)
        written = run(command, model.path, "--self-test")
        assert written == f"{model.path}: {len(TEXTS)} answers are as expected\n"


def test_settings_of_the_search_are_those_of_python(tool: Path, folder: Path) -> None:
    model, sources = load(folder), [*map(Source, WORDS)]
    for settings in (
        {"beam_size": 1, "nbest": 1},
        {"beam_size": 40, "nbest": 40},
        {"nbest": 9, "length_penalty": 1.5},
        {"nbest": 2, "max_length": 3},
    ):
        right = model.predict(sources, attention=True, **settings)
        options = [
            part
            for name, value in settings.items()
            for part in (f"--{name.replace('_', '-')}", str(value))
        ]
        for ours, theirs in zip(ask(tool, folder, sources, *options), right, strict=True):
            check_equal(ours, theirs)


def test_inflection_reads_features_and_copies_unseen_letters(
    tool: Path, checked: Path, module: Path, tmp_path: Path
) -> None:
    exported_model = export_inflection(tmp_path / "inflection")
    sources, nbest = exported_model.sources, exported_model.beam_size
    for command in (tool, checked / "foveal-run"):
        found = ask(command, exported_model.folder, sources, "--nbest", str(nbest))
        for ours, theirs in zip(found, exported_model.answers(), strict=True):
            check_equal(ours, theirs)
    _, found = ask_wasm(module, exported_model.folder, sources, nbest)
    for ours, theirs in zip(found, exported_model.answers(), strict=True):
        check_equal(ours, theirs)


def test_the_module_is_small(module: Path) -> None:
    assert module.stat().st_size <= MOST_WASM


@pytest.mark.parametrize(
    ("name", "storage"),
    [
        ("latent hard", "float32"),
        ("latent monotone", "int8"),
        ("segment, scaled", "half"),
        ("softmax, wide", "int8"),
        ("gru", "float32"),
    ],
)
def test_webassembly_answers_like_python(
    name: str, storage: Storage, module: Path, tmp_path: Path
) -> None:
    model, nbest = exported(name, tmp_path, storage), VARIANTS[name].beam_size
    sources = [*map(Source, TEXTS)]
    number, found = ask_wasm(module, model.path, sources, nbest)
    assert number == len(TEXTS)
    for ours, theirs in zip(
        found, model.predict(sources, nbest=nbest, attention=True), strict=True
    ):
        check_equal(ours, theirs)


def test_an_answer_does_not_depend_on_earlier_ones(tool: Path, folder: Path) -> None:
    together = run(tool, folder, "--nbest", "3", lines=TEXTS * 2)
    alone = "".join(run(tool, folder, "--nbest", "3", lines=[text]) for text in TEXTS)
    assert together == alone * 2


def test_the_example_of_the_readme_answers(tool: Path, folder: Path, tmp_path: Path) -> None:
    (code,) = re.findall(r"```c\n(.*?)```", (LIBRARY / "README.md").read_text(), re.DOTALL)
    (tmp_path / "example.c").write_text(code)
    made = ["-I", LIBRARY, tmp_path / "example.c", tool.with_name("libfoveal.a"), "-lm"]
    subprocess.run(["cc", *made, "-o", tmp_path / "example"], check=True)
    written = run(tmp_path / "example", folder, "bad")
    right = load(folder).predict("bad", nbest=3)
    assert written == "".join(f"{each.output}\t{each.confidence:.4f}\n" for each in right.nbest)


def test_the_table_of_graphemes_is_up_to_date() -> None:
    subprocess.run([sys.executable, ROOT / "scripts/grapheme_table.py", "--check"], check=True)


def _random_texts(chance: random.Random) -> list[str]:
    """Return texts of Latin letters and of the code points at both ends of every class of graphemes."""
    table = (LIBRARY / "source/grapheme_table.c").read_text(encoding="ascii")
    ends = [int(number, 16) for number in re.findall(r"0x(\w+)", table)]
    edges = [*range(1, 0x250), *ends, *(end - 1 for end in ends), *(end + 1 for end in ends)]
    allowed = [
        number
        for number in edges
        if 0 < number <= 0x10FFFF
        and number not in (0x09, 0x0A, 0x0D)
        and not 0xD800 <= number < 0xE000
    ]
    often = [0x20, 0xA0, 0x85, 0x3000, 0x200D, 0x1F468, 0x1F1E6, 0x1100, 0x1161, 0x11A8, 0xAC00]
    return [
        "".join(
            chr(chance.choice(often if chance.random() < 0.4 else allowed))
            for _ in range(chance.randrange(1, 24))
        )
        for _ in range(3000)
    ]


@pytest.mark.parametrize(
    "spec",
    [
        CharacterSpec(),
        CharacterSpec(unit="code_point"),
        CharacterSpec(spaces="drop"),
        WhitespaceSpec(),
        FeaturesSpec(separator=" "),
    ],
)
def test_texts_are_split_like_in_python(
    spec: AbstractTokenizerSpec, tool: Path, tmp_path: Path
) -> None:
    task = task_of(VARIANTS["softmax, greedy"])
    changed = replace(task.spec, source=spec)
    save_bundle(changed.build(task.vocabularies), tmp_path / "run")
    export_bundle(tmp_path / "run", tmp_path / "export", ["a"], ExportOptions(plain=True))
    texts = _random_texts(random.Random(1))
    sources = [*map(Source, texts)]
    found = ask(tool, tmp_path / "export", sources, "--max-length", "1")
    # Without a token there is no attention to see.
    seen = [answer["attention"]["sources"] for answer in found]
    assert seen == [spec.encode(text) or [""] for text in texts]


def test_a_thousand_damaged_files_end_in_an_error(checked: Path, tmp_path: Path) -> None:
    source, program = ROOT / "tests/runtimes/mutations.c", tmp_path / "mutations"
    flags = ["-std=gnu99", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    library = ["-I", LIBRARY, source, checked / "libfoveal.a", "-lm", "-o", program]
    subprocess.run(["cc", *flags, *library], check=True)
    models = [tmp_path / name / "export" for name in ("latent monotone", "copy", "before, deep")]
    for name, storage in zip(models, STORAGES, strict=True):
        exported(name.parent.name, name.parent, storage)
    models.append(export_inflection(tmp_path / "inflection").folder)
    refused = answered = 0
    for model in models:
        counts = [int(part) for part in run(program, model / "model.plain", "250").split()]
        wrong_sum, accepted, right_sum, loaded = counts
        assert (wrong_sum, accepted) == (125, 0)
        refused, answered = refused + right_sum, answered + loaded
    assert refused + answered == 500
    assert refused > 250  # the others changed a weight or a token


def _damaged(content: bytes, change: Callable[[bytearray], None]) -> bytes:
    copy = bytearray(content)
    change(copy)
    return bytes(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda copy: copy.clear(), "expected a plain model file"),
        (lambda copy: copy.__setitem__(8, 2), "has version 2, this library reads version 1"),
        (lambda copy: copy.__setitem__(-1, copy[-1] ^ 1), "wrong SHA-256 checksum"),
        (lambda copy: copy.__delitem__(slice(-9, None)), "wrong SHA-256 checksum"),
    ],
)
def test_a_refusal_says_why(
    change: Callable[[bytearray], None], message: str, tool: Path, folder: Path, tmp_path: Path
) -> None:
    content = (folder / "model.plain").read_bytes()
    (tmp_path / "model.plain").write_bytes(_damaged(content, change))
    _refused(message, 1, tool, tmp_path)


def _refused(message: str, code: int, tool: Path, *arguments: str | Path, line: str = "") -> None:
    ran = subprocess.run(
        [tool, *arguments], input=line.encode(), capture_output=True, check=False, timeout=60
    )
    assert ran.returncode == code
    assert message in ran.stderr.decode()


@pytest.mark.parametrize(
    ("options", "line", "message"),
    [
        (["--nbest", "5", "--beam-size", "2"], b"bad\n", "got nbest=5 and beam_size=2"),
        (["--max-length", "999999"], b"bad\n", "Set max_length"),
        ([], b"a" * 5000 + b"\n", "at most 4000 tokens, got 5000"),
        ([], b"\xff\xfe\n", "must be UTF-8"),
    ],
)
def test_inputs_out_of_range_are_refused(
    options: Sequence[str], line: bytes, message: str, tool: Path, folder: Path
) -> None:
    ran = subprocess.run([tool, folder, *options], input=line, capture_output=True, check=False)
    assert ran.returncode == 1
    assert message in ran.stderr.decode()


def test_wrong_use_shows_the_options(tool: Path, folder: Path, tmp_path: Path) -> None:
    for arguments in ([], ["--nbest"], [folder, "--nbest", "0"], [folder, "--format", "xml"]):
        _refused("usage: foveal-run MODEL", 2, tool, *arguments)
    _refused("no such file", 1, tool, tmp_path / "nothing")


def test_a_changed_example_is_found(tool: Path, tmp_path: Path) -> None:
    task = task_of(VARIANTS["softmax"])
    save_bundle(task, tmp_path / "run")
    export_bundle(
        tmp_path / "run", tmp_path / "export", [Example("bad")], ExportOptions(plain=True)
    )
    file = tmp_path / "export/model.plain"
    content = bytearray(file.read_bytes())
    content[-9] ^= 1  # the last letter of the output, before its score
    content[-1] ^= 0x40  # and the exponent of the score
    content[12:44] = hashlib.sha256(content[44:]).digest()
    file.write_bytes(bytes(content))
    _refused("when the model was exported", 1, tool, tmp_path / "export", "--self-test")
