"""On real files, if they are available, the inferred settings match a person's choice."""

import pytest

from examples.support import DATA
from foveal.data import open_source
from foveal.planning import infer_task

pytestmark = pytest.mark.slow

CORPORA = [
    ("g2p_sigmorphon2021/low/ice_train.tsv", "transduction", "characters", "whitespace"),
    ("g2p_sigmorphon2021/medium/jpn_hira_train.tsv.gz", "transduction", "characters", "whitespace"),
    ("translit_coling2018/wd_katakana_64.gz", "transduction", "characters", "whitespace"),
    ("translit_coling2018/wd_chinese_64.gz", "transduction", "characters", "whitespace"),
    ("translit_ar2en/ar2en-train.txt", "transduction", "characters", "characters"),
    ("inflection_sigmorphon2023/deu.trn.gz", "transduction", "characters", "characters"),
    ("cogs/train.tsv.gz", "transduction", "whitespace", "whitespace"),
    ("ud_english_ewt/en_ewt-ud-dev.conllu.gz", "tagging", "whitespace", "whitespace"),
    ("wnut17_ner/emerging.dev.conll", "tagging", "whitespace", "whitespace"),
    ("tinyshakespeare/input.txt.gz", "language_modeling", "sentencepiece", None),
]


@pytest.mark.parametrize(("name", "task", "source", "target"), CORPORA)
def test_a_corpus_is_understood(name: str, task: str, source: str, target: str | None) -> None:
    if not (DATA / name).exists():
        pytest.skip(f"data not found at {DATA / name}; set FOVEAL_DATA")
    found = infer_task(open_source(DATA / name).source)
    kind = None if found.target is None else found.target.kind
    assert (found.task, found.source.kind, kind) == (task, source, target)


def test_translation() -> None:
    folder = DATA / "enja_tanaka50k"
    if not folder.exists():
        pytest.skip(f"data not found at {folder}; set FOVEAL_DATA")
    opened = open_source(folder / "train.ja.gz", folder / "train.en.gz")
    found = infer_task(opened.source)
    assert found.target is not None
    assert (found.source.kind, found.target.kind) == ("characters", "whitespace")
    assert found.source.encode("誰 が 一番")[:3] == ["誰", "が", "一"]


def test_features_are_found() -> None:
    file = DATA / "inflection_sigmorphon2023" / "deu.trn.gz"
    if not file.exists():
        pytest.skip(f"data not found at {file}; set FOVEAL_DATA")
    example = next(iter(open_source(file).source))
    assert (example.source, example.features, example.target) == (
        "Aa machen",
        "V.PTCP;PRS",
        "Aa machend",
    )
