"""`foveal lexicon` writes lexicons that speech engines read: known words first, and the words to check apart."""

from pathlib import Path

import numpy as np
import pytest

from foveal import fit
from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.data.formats._lexicons import LexiconFormat, read_lexicon
from foveal.tasks import PredictionSpec, Transduction
from tests.cli.test_commands import WORDS, foveal, write

pytestmark = pytest.mark.slow

ENGLISH = Path(__file__).resolve().parents[2] / "shelf/foveal_shelf/models/g2p-en"
KNOWN = """\
;;; comments of CMUdict
ab  A1 B # a note
ab(2)  A0 B
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of words, a lexicon and a list of words."""
    folder = tmp_path_factory.mktemp("lexicon")
    write(folder / "train.tsv", WORDS)
    train = folder / "train.tsv"
    fit(
        train,
        dev=train,
        out=folder / "run",
        steps=150,
        attention="softmax",
        encoder__hidden_size=32,
        decoder__hidden_size=32,
        quiet=True,
    )
    (folder / "known.txt").write_text(KNOWN)
    (folder / "words.txt").write_text("cd\nab\nAB\t7 times\ncd\n\nef\n")
    return folder


def written(folder: Path, *options: str) -> tuple[list[str], str]:
    done = foveal("lexicon", "run", "words.txt", *options, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def answers(folder: Path, words: list[str], nbest: int) -> list[list[tuple[str, float]]]:
    task = load_bundle(folder / "run")
    assert isinstance(task, Transduction)
    found = task.predict([Example(word) for word in words], PredictionSpec(nbest=nbest))
    return [[(each.output, each.probability) for each in one.nbest] for one in found]


def test_the_table_has_confidence_and_origin(folder: Path) -> None:
    lines, said = written(folder, "--known", "known.txt", "--nbest", "2", "--check", "check.tsv")
    (cd, ef) = answers(folder, ["cd", "ef"], 2)
    assert lines == [
        *(f"cd\t{output}\t{confidence:.4f}\tmodel" for output, confidence in cd),
        *("ab\tA1 B\t1.0000\tlexicon", "ab\tA0 B\t1.0000\tlexicon"),
        *("AB\tA1 B\t1.0000\tlexicon", "AB\tA0 B\t1.0000\tlexicon"),
        *(f"ef\t{output}\t{confidence:.4f}\tmodel" for output, confidence in ef),
    ]
    doubtful = sorted(
        (row for row in (("cd", *cd[0]), ("ef", *ef[0])) if row[2] < 0.5), key=lambda row: row[2]
    )
    expected = [f"{word}\t{output}\t{sure:.4f}" for word, output, sure in doubtful]
    assert (folder / "check.tsv").read_text().splitlines() == expected
    assert "4 words: 2 from lexicons, 2 from the model." in said
    assert f"with a confidence below 0.5: {len(expected)}" in said


def test_all_words_are_to_be_checked_below_a_confidence_of_two(folder: Path) -> None:
    _, said = written(folder, "--known", "known.txt", "--check-below", "2")
    assert "with a confidence below 2: 4 (--check FILE lists them)" in said


def test_formats_of_speech_engines(folder: Path) -> None:
    (cd,) = answers(folder, ["cd"], 2)
    first, second = (output for output, _ in cd)
    cmudict, _ = written(folder, "--known", "known.txt", "--format", "cmudict", "--nbest", "2")
    assert cmudict[:4] == [f"cd  {first}", f"cd(2)  {second}", "ab  A1 B", "ab(2)  A0 B"]
    sherpa, _ = written(folder, "--known", "known.txt", "--format", "sherpa")
    assert sherpa[:2] == [f"cd {first}", "ab A1 B"]
    assert [line.split()[0] for line in sherpa] == ["cd", "ab", "ef"]  # AB is ab there
    kokoro, _ = written(folder, "--known", "known.txt", "--format", "kokoro")
    assert kokoro[:2] == [f"cd {' '.join(first.replace(' ', ''))}", "ab A 1 B"]


def test_only_tokens_of_the_inventory_are_written(folder: Path) -> None:
    (folder / "phones.txt").write_text("A0\tvowel\nB\tstop\nc\nd\n")
    lines, _ = written(folder, "--known", "known.txt", "--inventory", "phones.txt")
    rows = {
        word: (tokens, origin) for word, tokens, _, origin in (row.split("\t") for row in lines)
    }
    assert rows["cd"] == ("c d", "model")
    assert rows["ab"] == ("A0 B", "lexicon")  # its first pronunciation has A1
    assert all(set(tokens.split()) <= {"A0", "B", "c", "d"} for tokens, _ in rows.values())
    (folder / "phones.txt").write_text("B\na\nb\n")
    lines, said = written(folder, "--known", "known.txt", "--inventory", "phones.txt")
    rows = {
        word: (tokens, origin) for word, tokens, _, origin in (row.split("\t") for row in lines)
    }
    assert rows["ab"] == ("a b", "model")
    silent = 4 - len(rows)  # words that the model cannot pronounce with these tokens
    left_out = f", {silent} without a pronunciation and left out" if silent else ""
    assert f"4 words: 0 from lexicons, {len(rows)} from the model{left_out}." in said


def test_an_inventory_without_tokens_of_the_model_is_refused(folder: Path) -> None:
    (folder / "phones.txt").write_text("XX\n")
    done = foveal("lexicon", "run", "words.txt", "--inventory", "phones.txt", folder=folder)
    assert done.returncode == 2
    assert "prediction.inventory: expected tokens of the outputs of this model" in done.stderr
    (folder / "phones.txt").write_text("\n")
    done = foveal("lexicon", "run", "words.txt", "--inventory", "phones.txt", folder=folder)
    assert done.returncode == 2
    assert "expected a token in the first column of each line" in done.stderr


@pytest.mark.parametrize("form", ["table", "cmudict", "sherpa"])
def test_what_is_written_can_be_read(folder: Path, form: LexiconFormat) -> None:
    lines, _ = written(folder, "--known", "known.txt", "--format", form)
    (folder / "again.txt").write_text("\n".join(lines) + "\n")
    found = read_lexicon([str(folder / "again.txt")])
    (cd,) = answers(folder, ["cd"], 1)
    assert found["cd"] == [tuple(cd[0][0].split())]
    assert found["ab"][0] == ("A1", "B")


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ("cat\n", (), "known.bad, line 1: expected a word and its pronunciation"),
        ("cat K AE T\n\nab\t\n", (), "known.bad, line 3: expected a word and its pronunciation"),
    ],
)
def test_a_damaged_lexicon_is_refused(
    folder: Path, lines: str, options: tuple[str, ...], message: str
) -> None:
    (folder / "known.bad").write_text(lines)
    done = foveal("lexicon", "run", "words.txt", "--known", "known.bad", *options, folder=folder)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_word_with_a_space_is_refused_where_a_space_ends_the_word(folder: Path) -> None:
    done = foveal("lexicon", "run", "--format", "sherpa", folder=folder, text="ab cd\n")
    assert done.returncode == 2
    assert "expected a word without spaces, got 'ab cd'" in done.stderr
    assert foveal("lexicon", "run", folder=folder, text="ab cd\n").returncode == 0


def check_in_sherpa_onnx(lines: list[str], folder: Path) -> None:
    """The voice is a graph whose samples are the ids of its tokens; so the test shows what sherpa-onnx looks up."""
    sherpa_onnx = pytest.importorskip("sherpa_onnx")
    pytest.importorskip("onnx")
    from tests.cli.echoing_voice import write_voice  # noqa: PLC0415 - needs onnx

    (folder / "lexicon.txt").write_text("\n".join(lines) + "\n")
    tokens = sorted({token for line in lines for token in line.split()[1:]})
    numbers = {token: number for number, token in enumerate(tokens, 1)}
    write_voice(folder / "voice.onnx", folder / "tokens.txt", tokens)
    voice = sherpa_onnx.OfflineTtsVitsModelConfig(
        model=str(folder / "voice.onnx"),
        lexicon=str(folder / "lexicon.txt"),
        tokens=str(folder / "tokens.txt"),
    )
    model = sherpa_onnx.OfflineTtsModelConfig(vits=voice, num_threads=1, provider="cpu")
    engine = sherpa_onnx.OfflineTts(sherpa_onnx.OfflineTtsConfig(model=model))
    for line in lines:
        word, *pronunciation = line.split()
        samples = np.array(engine.generate(word, sid=0, speed=1.0).samples)
        found = np.rint(samples * 1000).astype(int).tolist()
        assert found == [numbers[token] for token in pronunciation]


def test_sherpa_onnx_reads_the_lexicon(folder: Path, tmp_path: Path) -> None:
    lines, _ = written(folder, "--known", "known.txt", "--format", "sherpa")
    check_in_sherpa_onnx(lines, tmp_path)


def test_sherpa_onnx_reads_the_lexicon_of_the_shipped_english_model(tmp_path: Path) -> None:
    words = ["reykjavik", "frequent", "don't", "xylotron", "foveal"]  # three from CMUdict
    text = "".join(f"{word}\n" for word in words)
    done = foveal("lexicon", ENGLISH, "--format", "sherpa", folder=tmp_path, text=text)
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == words
    assert "5 words: 3 from lexicons, 2 from the model." in done.stderr
    check_in_sherpa_onnx(lines, tmp_path)
