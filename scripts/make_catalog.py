"""Write `foveal/datasets/catalog.json`: sources, licenses and checksums of the data sets that the project reads.

    python scripts/make_catalog.py FOLDER [FOLDER ...]

A folder has a folder for each data set, with its files and a PROVENANCE.md that has source, commit, citation and a table
of files and of their paths in the source. Checksums are computed from the files, and never typed.
"""

import re
import sys
from dataclasses import asdict
from fnmatch import fnmatch
from json import dumps
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from foveal.datasets._catalog import DataFile, DataSet  # noqa: E402 - after the path
from foveal.datasets._contents import content_digest, uncompressed_size  # noqa: E402

OUT = ROOT / "foveal/datasets/catalog.json"
RAW = "https://raw.githubusercontent.com"
_ROW = re.compile(r"^\| (?P<path>[^|]+) \| (?P<upstream>[^|]+) \| \d+ \|", re.MULTILINE)
_MADE = re.compile(r"[*{]|joined|reduced|missing \['")  # paths of files that were made from several


class Entry(NamedTuple):
    """The description of a data set, written by a person."""

    about: str
    license: str
    files: tuple[str, ...] = ("*",)  # patterns
    by_hand: str | None = None


_REDUCED = (
    "The images are reduced to four gray levels, which is not published: put archives of your own, with the same "
    "names of images, into the data folder."
)
ENTRIES = {
    "align_gold_jaen": Entry("Japanese-English sentences with word alignments", "CC BY-SA 3.0"),
    "align_xlwa": Entry(
        "word alignments of English and ten languages", "CC BY-NC-SA 4.0", ("*.tsv",)
    ),
    "babi_v1-2": Entry(
        "questions about short stories, 20 tasks",
        "CC BY 3.0",
        ("en-valid.tar.gz", "en-10k.tar.gz"),
        "Clone the source: its folder tasks/ has en-valid/ and en-10k/. The archive en-10k.tar.gz of this catalog "
        "lacks qa3_three-supporting-facts_train.txt.",
    ),
    "cad_nli": Entry(
        "pairs of sentences with counterfactual edits", "Apache-2.0", ("all_combined/*",)
    ),
    "cogs": Entry("sentences and their logical forms", "MIT"),
    "conll2000_chunking": Entry(
        "sentences of newspapers with phrase chunks", "not stated; text of the WSJ"
    ),
    "crohme_png": Entry(
        "handwritten formulas and their LaTeX",
        "not stated; CROHME is CC BY-NC-SA 3.0",
        ("*.tsv", "*.tsv.gz", "*.zip"),
        _REDUCED,
    ),
    "easy_vqa": Entry(
        "images of one shape, and questions about them",
        "MIT",
        ("*.zip", "*/questions.json.gz"),
        "Run: pip download --no-deps easy-vqa==1.0, and unzip the wheel into a folder.",
    ),
    "enja_tanaka50k": Entry("Japanese and English sentences", "CC BY 2.0 FR", ("*.ja*", "*.en*")),
    "g2p_cmudict": Entry("American English words and their phonemes", "BSD-2-Clause"),
    "g2p_sigmorphon2021": Entry(
        "words of 21 languages and their phonemes", "CC BY-SA 3.0", ("*.tsv*",)
    ),
    "g2p_wikipron_sel": Entry(
        "words of German and Hindi and their pronunciations", "CC BY-SA", ("deu_*", "hin_*")
    ),
    "im2latex_val_test": Entry(
        "images of formulas and their LaTeX",
        "not stated; from sources of arXiv",
        ("*.gz", "*.zip"),
        _REDUCED,
    ),
    "imdb_aclImdb": Entry(
        "50,000 reviews of films, for and against",
        "not stated; text of users of IMDb",
        by_hand="Get aclImdb_v1.tar.gz of ai.stanford.edu/~amaas/data/sentiment, and write the lines "
        "label<TAB>rating<TAB>number<TAB>text into train.tsv.zst and test.tsv.zst of the data folder.",
    ),
    "inflection_sigmorphon2023": Entry(
        "lemmas, features and inflected forms, 12 languages",
        "not stated; UniMorph is CC BY-SA",
        ("*.trn.gz", "[a-z_]*.dev", "[a-z_]*.tst"),
    ),
    "movie_reviews_pang_lee": Entry("2,000 long reviews of films, for and against", "CC BY 4.0"),
    "multi30k": Entry(
        "captions in German and English", "for research only", ("tok/*.de*", "tok/*.en*")
    ),
    "nli_extra": Entry(
        "pairs of sentences of several corpora", "various", ("joci/*", "mnli/*", "mpe/*")
    ),
    "scan": Entry("commands and the actions that they ask for", "BSD"),
    "sentence_polarity": Entry(
        "sentences of film reviews, for and against", "CC BY 4.0", ("sentence*",)
    ),
    "sick_nli": Entry("pairs of sentences, entailment", "CC BY-NC-SA 3.0", ("SICK_*",)),
    "snli_dev_test": Entry(
        "pairs of sentences, entailment",
        "CC BY-SA 4.0",
        by_hand="Clone the source, and join the lines of dataset/eSNLI/labels, s1, s2 and preproc1_expl_1 of dev and "
        "of test by tabs, into snli.dev.tsv and snli.test.tsv of a folder.",
    ),
    "sst_trees": Entry(
        "sentences of film reviews with trees and the sentiment of phrases",
        "not stated; text of Rotten Tomatoes",
    ),
    "tinyshakespeare": Entry("plays of Shakespeare", "public domain"),
    "translit_ar2en": Entry("Arabic names in Latin letters", "Apache-2.0", ("ar2en*",)),
    "translit_coling2018": Entry(
        "names in Latin letters and six other scripts", "CC0 1.0", ("wd_*", "LICENSE")
    ),
    "ud_english_ewt": Entry(
        "English sentences with dependency trees", "CC BY-SA 4.0", ("*.conllu.gz",)
    ),
    "ud_french_sequoia": Entry(
        "French sentences with dependency trees", "LGPL-LR", ("*.conllu.gz",)
    ),
    "wnut17_ner": Entry("messages with named entities", "CC BY 4.0", ("*.conll*", "*.annotated")),
}


def main(folders: list[Path]) -> None:
    """Write the catalog."""
    rows = [_plain(asdict(read(name, entry, folders))) for name, entry in ENTRIES.items()]
    OUT.write_text(dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    num_files = sum(len(row["files"]) for row in rows)
    print(f"{len(rows)} data sets with {num_files} files in {OUT}")


def read(name: str, entry: Entry, folders: list[Path]) -> DataSet:
    """A data set as its folder has it."""
    folder = next(folder / name for folder in folders if (folder / name).is_dir())
    text = (folder / "PROVENANCE.md").read_text(encoding="utf-8")
    revision = (_field(text, "Commit") or "").partition(" ")[0] or None
    source = (_field(text, "Source") or "").partition(" (")[0]
    files = tuple(
        _file(folder, row["path"], row["upstream"])
        for row in _ROW.finditer(text)
        if row["path"] != "file" and any(fnmatch(row["path"], each) for each in entry.files)
    )
    assert files, name
    repository = source.removeprefix("https://github.com/")
    return DataSet(
        name=name,
        about=entry.about,
        source=source,
        revision=revision,
        license=entry.license,
        citation=_field(text, "Citation") or "",
        files=files,
        by_hand=entry.by_hand,
        files_at=f"{RAW}/{repository}/{revision}/" if revision else None,
    )


def _field(text: str, name: str) -> str | None:
    found = re.search(rf"^- {name}: (.*)$", text, re.MULTILINE)
    return found and found[1].strip()


def _file(folder: Path, name: str, upstream: str) -> DataFile:
    path = folder / name
    plain = re.sub(r" \(.*\)$", "", upstream)
    is_folder = path.suffix == ".zip" and not Path(plain).suffix
    place = None if _MADE.search(upstream) else f"{plain}/" if is_folder else plain
    return DataFile(
        path=name, size=uncompressed_size(path), sha256=content_digest(path), upstream=place
    )


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row without its empty fields."""
    return {
        **row,
        "files": [{key: value for key, value in f.items() if value} for f in row["files"]],
    }


if __name__ == "__main__":
    main([Path(folder) for folder in sys.argv[1:]])
