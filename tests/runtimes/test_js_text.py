"""Parts of the JavaScript runtime against the functions of the Python runtime: text, images, taggings, checksums."""

import base64
import gzip
import hashlib
import io
import json
import random
import shutil
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import regex
import sentencepiece
from PIL import Image

from foveal.data import SentencePieceSpec
from foveal.runtime._calibration import Scaling, calibrated
from foveal.runtime._chain import Chain
from foveal.runtime.images._pixels import picture_pixels
from foveal.runtime.text._spelling import spelling_numbers, word_shape
from foveal.runtime.text._text import characters, features, pieces
from scripts import grapheme_module
from tests.runtimes.javascript import HERE, ROOT, in_node

if shutil.which("node") is None:
    pytest.skip("node is needed", allow_module_level=True)

PARTS = HERE / "texts.mjs"
STAGED = ROOT.parent / "shared/data"
# Blocks whose characters join, break or disappear in unusual ways, and all of Unicode.
BLOCKS = [
    (0x0, 0x20),
    (0x20, 0x7F),
    (0x80, 0x250),
    (0x300, 0x370),
    (0x600, 0x700),
    (0x900, 0x980),
    (0xE00, 0xF00),
    (0x1000, 0x10A0),
    (0x1100, 0x1200),
    (0x1780, 0x1800),
    (0x2000, 0x2070),
    (0xAC00, 0xD7A4),
    (0xFE00, 0xFE10),
    (0x110B0, 0x110C0),
    (0x1F1E6, 0x1F200),
    (0x1F300, 0x1F700),
    (0x0, 0x110000),
]
JOINERS = "\u200d\r\n\u0301 \u00a0\u2028\x85\x1c;\u094d\ufe0f"


def is_legal(text: str) -> bool:
    return not any(0xD800 <= ord(character) < 0xE000 for character in text)


def random_texts(number: int) -> list[str]:
    chance, found = random.Random(5), list[str]()
    while len(found) < number:
        blocks = chance.choices(BLOCKS, k=chance.randint(1, 3))
        text = "".join(
            chance.choice(JOINERS)
            if chance.random() < 0.2
            else chr(chance.randrange(*chance.choice(blocks)))
            for _ in range(chance.randint(0, 12))
        )
        if is_legal(text):
            found.append(text)
    return found


def real_texts(number: int) -> list[str]:
    """Lines of the staged data, or of the samples in the package: the same number from each file."""
    folder = STAGED if STAGED.is_dir() else ROOT / "foveal/datasets/samples"
    files = [*folder.rglob("*.tsv"), *folder.rglob("*.tsv.gz"), *folder.rglob("*.dev")]
    files = sorted(path for path in files if "_measure_only" not in path.parts)
    chance, found = random.Random(1), list[str]()
    for path in files:
        with (
            gzip.open(path, "rt", encoding="utf-8")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8") as file
        ):
            lines = [line.rstrip("\n") for line in islice(file, 20_000)]
        found += chance.sample(lines, min(len(lines), number // len(files) + 1))
    return found


@pytest.mark.parametrize("texts", [random_texts(5_000), real_texts(5_000)], ids=["random", "real"])
def test_texts_are_split_like_python(texts: list[str]) -> None:
    expected = [
        [
            characters(text),
            characters(text, unit="code_point", spaces="drop"),
            pieces(text),
            features(text, ";"),
            features(text, ""),
        ]
        for text in texts
    ]
    assert any(
        len(row[0]) < len(row[1]) for row in expected
    )  # some graphemes have several characters
    found = in_node(PARTS, "split", texts)
    different = [
        text for text, ours, theirs in zip(texts, found, expected, strict=True) if ours != theirs
    ]
    assert different == []


def test_the_table_of_graphemes_is_that_of_the_package_regex() -> None:
    content = grapheme_module.TARGET.read_text(encoding="utf-8")
    if f"regex {regex.__version__}." not in content:
        pytest.skip("the table was written with another version of regex")
    assert content == grapheme_module.content()


def test_spelling_features_are_hashed_like_python() -> None:
    words = [
        "Redondo",
        "iPhone",
        "1,000",
        "NASA",
        "@you",
        "\u0130stanbul",
        "\u03a3\u03a3",
        "\u01c5",
        "",
    ]
    words += [text for text in random_texts(2_000) if not any(c >= "\u1c80" for c in text)]
    found = in_node(PARTS, "spelled", words, {"prefixes": 3, "suffixes": 3, "numBuckets": 1 << 20})
    for word, (shape, ids) in zip(words, found, strict=True):
        assert shape == word_shape(word), word
        assert ids == list(spelling_numbers(word, 3, 3, 1 << 20)), word


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
def test_subwords_are_those_of_sentencepiece(algorithm: str) -> None:
    texts = [text for text in real_texts(3_000) if "\0" not in text]
    spec = SentencePieceSpec(num_pieces=1_500, algorithm=algorithm).trained_on(texts[:2_000])  # pyright: ignore[reportArgumentType]
    processor = sentencepiece.SentencePieceProcessor(model_proto=base64.b64decode(spec.model))
    asked = [
        *texts[2_000:],
        *(text for text in random_texts(1_000) if "\0" not in text),
        "",
        "  a ",
        "\u2581",
    ]
    pieces_of = [processor.encode(text, out_type=str) for text in asked]
    chance = random.Random(3)
    vocabulary = [processor.id_to_piece(n) for n in range(processor.get_piece_size())]
    lists = [chance.choices(vocabulary[1:], k=6) for _ in range(500)] + [["<unk>", "new", "a"], []]
    lists += [chance.choices(vocabulary[1:257], k=6) for _ in range(500)]  # bytes
    found, decoded = in_node(PARTS, "subwords", spec.model, asked, lists)
    assert found == pieces_of
    assert decoded == [processor.decode(tokens) for tokens in lists]


def test_confidence_is_calibrated_like_python() -> None:
    chance = np.random.default_rng(0)
    scalings = [Scaling(temperature=t, others=o) for t, o in ((0.8, 0.1), (1.5, -2.0), (1.1, 0.0))]
    lists = [np.sort(np.log(chance.dirichlet(np.ones(n + 1))[:n]))[::-1] for n in (1, 2, 3, 5)]
    lists.append(np.array([-0.1, -np.inf, -np.inf, -np.inf]))
    for given in (scalings, [Scaling(temperature=0.7, others=None)]):
        data = [{"temperature": each.temperature, "others": each.others} for each in given]
        wanted = [calibrated(tuple(given), row[None])[0] for row in lists]
        rows = [[None if value == -np.inf else value for value in row] for row in lists]
        found = in_node(PARTS, "confidences", data, rows)
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("k", [1, 3, 20])
def test_taggings_are_those_of_python(k: int) -> None:
    chance = np.random.default_rng(k)
    scores = {
        "transitions": chance.normal(size=(4, 4)).tolist(),
        "start": chance.normal(size=4).tolist(),
        "end": None,
    }
    for given, num_words in ((scores, 5), (None, 3), (scores, 1), (scores, 0)):
        unary = chance.normal(size=(1, max(num_words, 1), 4))
        right = Chain(given, 4).best(unary, np.array([num_words]), k)
        found = in_node(PARTS, "taggings", given, 4, unary.ravel().tolist(), num_words, k)
        exists = right.log_probs[0] > -np.inf
        log_probs = [each for each in found["logProbs"] if each is not None]
        np.testing.assert_allclose(log_probs, right.log_probs[0][exists], atol=1e-9)
        assert found["tags"][: len(log_probs)] == right.tags[0, exists, :num_words].tolist()
        probabilities = right.probabilities[0, :num_words]
        np.testing.assert_allclose(found["probabilities"], probabilities, atol=1e-9)


def image_settings(channels: int, *, trim: bool, ink: float | None) -> SimpleNamespace:
    return SimpleNamespace(num_channels=channels, height=24, width=32, trim=trim, ink=ink)


@pytest.mark.parametrize("shape", [(20, 30), (60, 100), (300, 40), (1, 400)])
def test_pixels_are_prepared_like_python(shape: tuple[int, int]) -> None:
    chance = np.random.default_rng(sum(shape))
    requests, wanted = list[object](), list[np.ndarray]()
    for mode, num in (("RGB", 3), ("L", 1), ("RGBA", 4)):
        if mode == "RGBA" and shape != (20, 30):
            continue  # scaled before it is put on white: not identical
        pixels = chance.integers(0, 256, (*shape, num), dtype=np.uint8)
        pixels[:1], pixels[:, :1] = 250, 250
        image = Image.fromarray(pixels[:, :, 0] if num == 1 else pixels, mode)
        for settings in (
            image_settings(1, trim=False, ink=None),
            image_settings(3, trim=True, ink=None),
            image_settings(1, trim=True, ink=0.45 if shape != (20, 30) else None),
        ):
            wanted.append(picture_pixels(image, settings))  # pyright: ignore[reportArgumentType]
            data = {"data": pixels.ravel().tolist(), "width": shape[1], "height": shape[0]}
            requests.append(
                [data | {"channels": num}, {**vars(settings), "numChannels": settings.num_channels}]
            )
    # Newer versions of Pillow scale tall images vertically first, which rounds differently.
    tolerance = 2 if shape[0] > 2 * shape[1] else 0
    for found, right in zip(in_node(PARTS, "prepared", requests), wanted, strict=True):
        assert (found["height"], found["width"]) == right.shape[1:]
        planes = right.reshape(len(right), -1).astype(int)
        np.testing.assert_allclose(found["planes"], planes, atol=tolerance, rtol=0)


def test_sizes_are_read_from_headers() -> None:
    files = list[str]()
    for form in ("PNG", "JPEG", "GIF", "BMP", "WEBP"):
        for options in ({}, {"lossless": True}) if form == "WEBP" else ({},):
            written = io.BytesIO()
            Image.new("RGB", (37, 21), (200, 30, 4)).save(written, form, **options)
            files.append(base64.b64encode(written.getvalue()).decode())
    assert in_node(PARTS, "sizes", files) == [{"width": 37, "height": 21}] * len(files)


def test_checksums_without_the_platform() -> None:
    contents = [random.Random(n).randbytes(n) for n in (*range(130), 5_000)]
    found = in_node(PARTS, "digests", [base64.b64encode(each).decode() for each in contents])
    assert found == [hashlib.sha256(each).hexdigest() for each in contents]


def test_the_package_has_the_version_of_the_python_runtime() -> None:
    package = json.loads((ROOT / "runtimes/js/package.json").read_text())
    project = Path(ROOT / "runtimes/python/pyproject.toml").read_text()
    assert f'version = "{package["version"]}"' in project
