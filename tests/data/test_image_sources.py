"""Sources of images: lists, folders, annotations, paths outside the folder, and real files."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from examples.support import DATA
from foveal import specs
from foveal.data import (
    ImageSpec,
    LatexSpec,
    Picture,
    PictureQuestion,
    Source,
    SourceSpec,
    coco_captions,
    easy_vqa,
    image_folders,
    image_list,
    karpathy_captions,
    open_source,
    read_image,
)
from foveal.errors import DataError

pytestmark = pytest.mark.slow

KARPATHY = {
    "images": [
        {
            "filepath": "val2014",
            "filename": "1.jpg",
            "split": "train",
            "sentences": [
                {"raw": "A cat.", "tokens": ["a", "cat"]},
                {"raw": "One\ncat.", "tokens": ["one", "cat"]},
            ],
        },
        {
            "filename": "2.jpg",
            "split": "test",
            "sentences": [{"raw": "A dog.", "tokens": ["a", "dog"]}],
        },
    ]
}
COCO = {
    "images": [{"id": 7, "file_name": "7.jpg"}, {"id": 8, "file_name": "sub/8.jpg"}],
    "annotations": [
        {"image_id": 8, "id": 1, "caption": "Eight."},
        {"image_id": 7, "id": 2, "caption": "Seven."},
        {"image_id": 8, "id": 3, "caption": "Eight again. "},
    ],
}


def as_json(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def pairs(source: Source) -> list[tuple[str, str | None]]:
    return [(str(example.source), example.target) for example in source]


def test_a_list_names_images_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "train.tsv"
    file.write_text("cat.png\ta cat\n\nsub/dog.png \t a dog\n")
    examples = list(image_list(file))
    assert [(e.source, e.target) for e in examples] == [
        (Picture(tmp_path / "cat.png"), "a cat"),
        (Picture(tmp_path / "sub/dog.png"), "a dog"),
    ]
    assert str(examples[1].where) == f"{file}, line 3"
    assert pairs(image_list(file, "photos.zip", target=None))[0] == ("photos.zip/cat.png", None)


def test_flickr8k_and_lines_whose_numbers_are_names(tmp_path: Path) -> None:
    file = tmp_path / "Flickr8k.token.txt"
    file.write_text("1_a.jpg#0\tA child .\n1_a.jpg#1\tA girl .\n")
    assert pairs(image_list(file, "images", numbered=True)) == [
        ("images/1_a.jpg", "A child ."),
        ("images/1_a.jpg", "A girl ."),
    ]
    assert pairs(image_list(file, "i", image=None, suffix=".png"))[1] == ("i/1.png", "A girl .")
    file.write_text("1_a.jpg\tA child .\n")
    with pytest.raises(DataError, match=r"line 1: expected a name, # and a number, got '1_a\.jpg'"):
        list(image_list(file, numbered=True))


def test_quotes_may_hold_line_breaks(tmp_path: Path) -> None:
    file = tmp_path / "train.tsv"
    file.write_text('1\t"a\nb"\n2\tc ""\n"3"\t"say ""d"""\n')
    source = image_list(file, "i", quotes=True)
    assert pairs(source) == [("i/1", "a b"), ("i/2", 'c ""'), ("i/3", 'say "d"')]
    assert len(source.shards(block=1)) == 1
    file.write_text('1\t"a\n')
    with pytest.raises(DataError, match="line 1: a quoted cell is not closed before the end"):
        list(source)


def test_questions_in_a_list(tmp_path: Path) -> None:
    file = tmp_path / "q.tsv"
    file.write_text("1.png\twhat is it?\ta cat\n")
    example = next(iter(image_list(file, second=1, target=2)))
    assert example.source == PictureQuestion(Picture(tmp_path / "1.png"), "what is it?")
    assert example.target == "a cat"
    file.write_text("1.png\n")
    with pytest.raises(DataError, match="1 columns, expected at least 2 separated by tabs"):
        list(image_list(file))


def test_folders_are_labels_in_the_order_of_numbers(tmp_path: Path) -> None:
    for name in ("dog/2.png", "cat/10.png", "cat/9.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("L", (2, 2)).save(tmp_path / name)
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    expected = [("cat/9.png", "cat"), ("cat/10.png", "cat"), ("dog/2.png", "dog")]
    assert pairs(image_folders(tmp_path)) == [
        (str(tmp_path / name), label) for name, label in expected
    ]
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for name, _ in expected:
            opened.write(tmp_path / name, name)
    assert pairs(image_folders(archive)) == [
        (str(archive / name), label) for name, label in expected
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="has no image in any of its folders"):
        list(image_folders(tmp_path / "empty"))


def test_karpathy_and_coco(tmp_path: Path) -> None:
    file = as_json(tmp_path / "dataset.json", KARPATHY)
    assert pairs(karpathy_captions(file, "i")) == [
        ("i/val2014/1.jpg", "A cat."),
        ("i/val2014/1.jpg", "One cat."),
    ]
    assert pairs(karpathy_captions(file, "i", splits=("test",), text="tokens")) == [
        ("i/2.jpg", "a dog")
    ]
    captions = as_json(tmp_path / "captions.json", COCO)
    assert pairs(coco_captions(captions)) == [
        (str(tmp_path / "sub/8.jpg"), "Eight."),
        (str(tmp_path / "7.jpg"), "Seven."),
        (str(tmp_path / "sub/8.jpg"), "Eight again."),
    ]


@pytest.mark.parametrize(
    ("source", "content", "said"),
    [
        (
            karpathy_captions,
            {"images": [{"split": "train"}]},
            "annotation 1: expected text as 'filename'",
        ),
        (karpathy_captions, [], "annotation 1: expected a list as 'images', got '[]'"),
        (
            coco_captions,
            {**COCO, "images": []},
            "annotation 1: image 8 is not in the list of images",
        ),
        (
            coco_captions,
            {**COCO, "annotations": [*COCO["annotations"], {"image_id": 8}]},
            "annotation 4: expected text as 'caption', got",
        ),
        (
            easy_vqa,
            [["q", "a", 1], ["q", 3, 1]],
            "annotation 2: expected a question, an answer and",
        ),
    ],
)
def test_a_fault_is_named_with_its_number(
    source: Callable[[Path], Source], content: Any, said: str, tmp_path: Path
) -> None:
    file = as_json(tmp_path / "a.json", content)
    with pytest.raises(DataError) as caught:
        list(source(file))
    assert str(caught.value).startswith(f"{file}, {said}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "../secret.png",
        "/etc/secret.png",
        "a/../../b.png",
        "C:/secret.png",
        "..\\secret.png",
        "",
        "a\0",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    file = as_json(
        tmp_path / "a.json",
        {"images": [{"filename": name, "split": "train", "sentences": [{"raw": "x"}]}]},
    )
    with pytest.raises(
        DataError, match=r"annotation 1: '.*' is not a path inside the folder of images"
    ):
        list(karpathy_captions(file))
    if "\0" not in name and name:
        listed = tmp_path / "a.tsv"
        listed.write_text(f"{name}\tx\n")
        with pytest.raises(
            DataError, match=r"line 1: '.*' is not a path inside the folder of images"
        ):
            list(image_list(listed))


def test_a_document_that_is_no_json(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    for content, said in (
        (b'{"images":\n [}', "line 2: invalid JSON at character 3"),
        (b"[" * 100_000, "the JSON is nested too deeply"),
        (b"\xff\xfe\xfd", "UTF-16|invalid JSON"),
        (b"[" + b"1" * 10_000 + b"]", "invalid JSON"),
    ):
        file.write_bytes(content)
        with pytest.raises(DataError, match=said):
            list(karpathy_captions(file))


def test_a_source_goes_on_from_any_position(tmp_path: Path) -> None:
    Image.new("L", (2, 2)).save(tmp_path / "1.png")
    (tmp_path / "label").mkdir()
    for n in range(5):
        Image.new("L", (2, 2)).save(tmp_path / "label" / f"{n}.png")
    captions = as_json(tmp_path / "captions.json", COCO)
    for source in (coco_captions(captions), image_folders(tmp_path)):
        (shard,) = source.shards()
        cursor = source.open(shard)
        next(cursor)
        rest = source.open(shard, cursor.position())
        assert [e.source for e in rest] == [e.source for e in list(source)[1:]]


def test_sources_are_specs_and_are_known_by_their_files(tmp_path: Path) -> None:
    for content, name in ((KARPATHY, "k.json"), (COCO, "c.json"), ([["q", "a", 1]], "q.json")):
        as_json(tmp_path / name, content)
    (tmp_path / "f.txt").write_text("1.jpg#0\tA child\n1.jpg#1\tA girl\n")
    (tmp_path / "l.tsv").write_text("1.png\ta cat\n2.png\ta dog\n")
    (tmp_path / "v.tsv").write_text("1.png\twhat?\ta cat\n")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/l.tsv").write_text("a\tb\n")
    with pytest.raises(
        DataError, match=r"a folder with 1 files .*Use a quoted pattern: .*/texts/\*\.tsv'"
    ):
        open_source(tmp_path / "texts")
    for name, kind in (
        ("k.json", "karpathy"),
        ("c.json", "coco_captions"),
        ("q.json", "easy_vqa"),
        ("f.txt", "image_list"),
        ("l.tsv", "image_list"),
        ("v.tsv", "image_list"),
        (".", "image_folders"),
    ):
        source = open_source(tmp_path / name).source
        assert source.kind == kind
        assert specs.from_json(SourceSpec, specs.to_json(source)) == source
    assert pairs(open_source(tmp_path / "f.txt").source)[1] == (str(tmp_path / "1.jpg"), "A girl")
    assert pairs(open_source(tmp_path / "v.tsv").source) == [
        (f"{tmp_path / '1.png'}\twhat?", "a cat")
    ]


def test_latex_is_cut_into_commands_and_characters() -> None:
    spec = LatexSpec()
    for text in (r"\frac{5} {6}", r" \log _ {b} (y ^ {a}) ", r"\left\{ x\, y \right\}", r"x\ y"):
        assert spec.encode(spec.decode(spec.encode(text))) == spec.encode(text)
    assert spec.encode(r"\alpha_1\beta") == [r"\alpha", "_", "1", r"\beta"]
    assert spec.encode(r"\begin{array}{c}") == [r"\begin{array}", "{", "c", "}"]


REAL: list[tuple[str, Source, int, tuple[str, str | None]]] = [
    (
        "easy_vqa",
        easy_vqa(DATA / "easy_vqa/test/questions.json.gz", DATA / "easy_vqa/test.images.zip"),
        9673,
        ("0.png", "triangle"),
    ),
    (
        "im2latex_val_test",
        image_list(
            DATA / "im2latex_val_test/test.formulas.norm.txt.gz",
            DATA / "im2latex_val_test/test.images.zip/test",
            image=None,
            target=0,
            suffix=".png",
        ),
        9443,
        ("0.png", None),
    ),
    (
        "crohme_png",
        image_list(
            DATA / "crohme_png/groundtruth_2014.tsv",
            DATA / "crohme_png/test.zip/test/2014",
            suffix=".png",
        ),
        986,
        ("18_em_22.png", r"p_1^{\gamma_1}p_2^{\gamma_2}\cdots p_n^{\gamma_n}"),
    ),
    (
        "crohme_png",
        image_list(
            DATA / "crohme_png/groundtruth_train.tsv.gz",
            DATA / "crohme_png/train.zip/train",
            suffix=".png",
            quotes=True,
        ),
        8835,
        ("TrainData1_6_sub_3.png", r"x^{2} + y^{2} \lt 1"),
    ),
]


@pytest.mark.parametrize(
    ("folder", "source", "num", "first"), REAL, ids=["vqa", "im2latex", "2014", "train"]
)
def test_the_real_files(
    folder: str, source: Source, num: int, first: tuple[str, str | None]
) -> None:
    if not (DATA / folder).exists():
        pytest.skip(f"data not found at {DATA / folder}; set FOVEAL_DATA")
    examples = list(source)
    assert len(examples) == num
    pictures = [
        e.source.picture if isinstance(e.source, PictureQuestion) else e.input_as(Picture)
        for e in examples[:20]
    ]
    assert pictures[0].name == first[0]
    assert first[1] in (examples[0].target, None)
    spec = ImageSpec(num_channels=1)
    seen = [read_image(picture.file, spec) for picture in pictures]
    assert all(image.float().std() > 5 for image in seen)  # no image is blank
