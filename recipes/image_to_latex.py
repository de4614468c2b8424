r"""Images of formulas to LaTeX, token by token.

    foveal fit --recipe recipes/image_to_latex.py --out runs/formulas           or :rendered_none, ...
    python -m benchmarks.images fit image_to_latex --runs runs                     all cases
    python -m benchmarks.images score image_to_latex --runs runs

A case is a corpus and an attention over the grid of the image. The corpora:

    rendered    formulas that `recipes.rendered` draws, up to 40 tokens, into `.cache/drawn_formulas`
    im2latex    real formulas (Kanervisto 2016). Training uses the validation part except 400 formulas for
                validation, and the test uses the test part; the training part is not available here
    crohme      handwritten formulas: the training part and formulas composed of its formulas
                (`recipes.rendered.composed`), in `.cache/handwritten`; the validation formulas that
                training does not have; and the test set of 2014

The second and the third corpus have a tenth of the formulas. They start from the weights of `rendered_brief`, which you
must train first, into `runs`, with the command above. `rendered_longer` starts from these weights too, and `rendered_more`
starts from the weights of `rendered_longer`.

The attentions:

    none        no attention: the decoder reads only the mean of the grid
    soft        softmax over all cells (Xu et al. 2015)
    hard        one cell, sampled during training (Xu et al. 2015)
    path        at most one cell of each column: a chain over columns
    segment     runs of cells within rows: a chain along each row
    brief       as soft, with half of the updates, for comparison with the other attentions
    longer      as soft, from the weights of brief, with batches of twice the size
    more        from the weights of longer, with label smoothing and four times the formulas, drawn into
                `.cache/more_drawn_formulas`

The encoder is a smaller version of the encoder of Deng et al. 2017: four convolutions and a recurrent network along each
row. `foveal data get im2latex_val_test crohme_png` gets the data.

Reference: Deng et al. 2017, Image-to-markup generation with coarse-to-fine attention.
"""

import gzip
import os
import zipfile
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from foveal.data import ImageList, ImageSpec, LatexSpec, LineReader, Picture, image_list, read_image
from foveal.datasets import data_folder
from foveal.models import (
    AttentionSpec,
    BilinearSpec,
    CaptionerSpec,
    DecoderSpec,
    HardSpec,
    ImageEncoderSpec,
    PathSpec,
    RecurrentSpec,
    SegmentSpec,
    SoftmaxSpec,
)
from foveal.tasks import CaptioningSpec, DistortionSpec, PredictionSpec
from foveal.training import Run, TrainingSpec
from recipes.rendered.composed import draw_composed
from recipes.rendered.formulas import AT_A_TIME, draw_formulas
from recipes.rendered.writing import Item, write_pictures
from recipes.whole_files import write_whole

ROOT = Path(__file__).resolve().parents[1]
DATA = data_folder()
FOLDER, MORE = ROOT / ".cache/drawn_formulas", ROOT / ".cache/more_drawn_formulas"
HANDWRITTEN = ROOT / ".cache/handwritten"
NUM_TRAIN, NUM_MORE, NUM_HELD_OUT, SEED = 60_000, 240_000, 1000, 1
NUM_DEV = 400  # im2latex formulas in the validation set
NUM_COMPOSED = 12_000  # composed of handwritten formulas
# Bilinear scores: additive scores of 200 cells and 40 tokens take half of the training time.
SCORER = BilinearSpec(scaled=True)
ATTENTIONS: dict[str, AttentionSpec | None] = {
    "none": None,
    "soft": SoftmaxSpec(scorer=SCORER),
    "brief": SoftmaxSpec(scorer=SCORER),
    "longer": SoftmaxSpec(scorer=SCORER),
    "more": SoftmaxSpec(scorer=SCORER),
    "hard": HardSpec(scorer=SCORER),
    "path": PathSpec(scorer=SCORER),
    "segment": SegmentSpec(scorer=SCORER, total=1.0),
}
CASES = (*(f"rendered_{kind}" for kind in ATTENTIONS), "im2latex_soft", "crohme_soft")
# Maximum height and width in pixels: larger formulas are shrunk.
IMAGES = {
    "rendered": ImageSpec(num_channels=1, height=64, width=320),
    "im2latex": ImageSpec(num_channels=1, height=80, width=400),
    # Originals all fill 250 columns: a single letter is taller than a cell's receptive field, one of forty is not.
    "crohme": ImageSpec(num_channels=1, height=96, width=256, trim=True, ink=0.15),
}
UPDATES = {"rendered": 4000, "im2latex": 2800, "crohme": 6500}
# Two cases of drawn formulas measure the effect of more training, and a third the effect of more formulas.
MORE_UPDATES = {"rendered_soft": 8000, "rendered_longer": 4800, "rendered_more": 3340}
RATES = {"rendered": 2e-3, "im2latex": 1e-3, "crohme": 2e-3}
DROPOUTS = {"rendered": 0.0, "im2latex": 0.1, "crohme": 0.3}
# Four laboratories wrote the LaTeX of CROHME in different styles, so formulas that look the same must be normalized. The
# LaTeX of im2latex is already normalized (Deng et al. 2017).
TARGETS = {
    "rendered": LatexSpec(),
    "im2latex": LatexSpec(),
    "crohme": LatexSpec(braces="canonical", signs="handwritten"),
}
# Initial weights of a case: there are ten times fewer real and handwritten formulas than rendered ones.
STARTS = {
    "rendered_longer": "runs/image_to_latex/rendered_brief_1",
    "rendered_more": "runs/image_to_latex/rendered_longer_1",
    "im2latex_soft": "runs/image_to_latex/rendered_brief_1",
    "crohme_soft": "runs/image_to_latex/rendered_brief_1",
}


def recipe(case: str = "rendered_soft") -> Run:
    """Return the run of one corpus with one kind of attention."""
    corpus, _, kind = case.partition("_")
    return Run(
        task=CaptioningSpec(
            image=IMAGES[corpus],
            target=TARGETS[corpus],
            min_count=1 if corpus == "rendered" else 2,
            model=CaptionerSpec(
                encoder=ImageEncoderSpec(
                    num_channels=1,
                    sizes=(32, 64, 96, 96),
                    # The last stage has stride 1: a cell then sees 31 rows, including the bar above a letter.
                    strides=((2, 2), (2, 2), (2, 1), (1, 1)),
                    # With a residual connection, the features of a cell reach the decoder from the first update.
                    rows=RecurrentSpec(hidden_size=48, dropout=0.0, residual=True),
                    norm="batch",
                ),
                decoder=DecoderSpec(
                    embedding_size=64,
                    hidden_size=192,
                    dropout=DROPOUTS[corpus],
                    attention=ATTENTIONS[kind],
                    # Without input feeding, the decoder does not know where it looked, and reads a part twice or skips one.
                    input_feeding=ATTENTIONS[kind] is not None,
                ),
            ),
            distortion=DistortionSpec(turn=1.5, shrink=0.2) if corpus == "crohme" else None,
            label_smoothing=0.0 if corpus == "rendered" and kind != "more" else 0.03,
            balanced=("{", "}"),
            prediction=PredictionSpec(max_length=None if corpus == "rendered" else 150),
        ),
        train=part(kind if kind == "more" else corpus, "train"),
        dev=part(corpus, "dev"),
        test=part(corpus, "test"),
        training=TrainingSpec(
            steps=MORE_UPDATES.get(case, UPDATES[corpus]),
            batch_tokens=12_000 if kind in ("longer", "more") else 6000,
            learning_rate=RATES[corpus],
            warmup_steps=200,
            # With an error rate of 5 %, a small validation set cannot rank weights.
            evaluate_every=500 if kind == "more" else None,
            validation_size=1000 if kind == "more" else 200,
            seed=1,
        ),
        start_from=STARTS.get(case),
    )


(
    rendered_none,
    rendered_soft,
    rendered_brief,
    rendered_longer,
    rendered_more,
    rendered_hard,
    rendered_path,
    rendered_segment,
) = (partial(recipe, f"rendered_{kind}") for kind in ATTENTIONS)
im2latex_soft, crohme_soft = partial(recipe, "im2latex_soft"), partial(recipe, "crohme_soft")


def part(corpus: str, name: str) -> ImageList:
    """Return one of the three parts of a corpus, or of `more`: rendered formulas with a larger training set."""
    if corpus in ("rendered", "more"):
        folder, num_train = (FOLDER, NUM_TRAIN) if corpus == "rendered" else (MORE, NUM_MORE)
        if not (folder / "manifest.json").exists():
            draw(folder, num_train)
        return image_list(folder / f"{name}.tsv", folder / "images.zip")
    if corpus == "crohme" and name == "train":
        if not (HANDWRITTEN / "manifest.json").exists():
            compose()
        return image_list(HANDWRITTEN / "train.tsv", HANDWRITTEN / "images.zip")
    lists = {"im2latex": _im2latex, "crohme": _crohme}
    return lists[corpus](name)


def corpus_files() -> list[Path]:
    """List the files of the real corpora."""
    im2latex = [
        f"{part}.{what}"
        for part in ("val", "test")
        for what in ("images.zip", "formulas.norm.txt.gz")
    ]
    crohme = [
        "train.zip",
        "test.zip",
        "gt_split/train.tsv.gz",
        "gt_split/validation.tsv.gz",
        "groundtruth_2014.tsv",
    ]
    return [
        *(DATA / "im2latex_val_test" / name for name in im2latex),
        *(DATA / "crohme_png" / name for name in crohme),
    ]


def draw(folder: Path, num_train: int) -> None:
    """Draw formulas that all look different; 60,000 take about 10 minutes on two cores.

    Validation and test formulas come first, so they do not depend on the size of the training set.
    """
    processes = (os.cpu_count() or 1) if num_train > AT_A_TIME else 1
    formulas = draw_formulas(SEED, processes=processes)
    parts = {"test": NUM_HELD_OUT, "dev": NUM_HELD_OUT, "train": num_train}
    about = {"what": "formulas", "seed": SEED}
    write_pictures(folder, {name: (formulas, count) for name, count in parts.items()}, about)


def compose() -> None:
    """Write the handwritten training formulas, and formulas composed of them; about two minutes."""
    written = list(_crohme("train"))
    whole = ImageSpec(num_channels=1, height=500, width=500)
    items = (
        Item(read_image(each.input_as(Picture).file, whole)[0].numpy(), each.target or "")
        for each in written
    )
    both = chain(items, draw_composed(written, IMAGES["crohme"], TARGETS["crohme"], SEED))
    about = {"what": "handwritten formulas", "seed": SEED}
    write_pictures(HANDWRITTEN, {"train": (both, len(written) + NUM_COMPOSED)}, about)


def _im2latex(name: str) -> ImageList:
    """Return a part; the first formulas of the original validation set are for validation."""
    split = "test" if name == "test" else "val"
    archive = DATA / f"im2latex_val_test/{split}.images.zip"
    chosen = {"train": slice(NUM_DEV, None), "dev": slice(NUM_DEV), "test": slice(None)}[name]
    return _listed(f"im2latex_{name}", archive, _im2latex_rows(split), chosen)


def _im2latex_rows(split: str) -> Iterator[tuple[str, str]]:
    """Yield images and formulas; line numbers are the names of the images."""
    path = DATA / f"im2latex_val_test/{split}.formulas.norm.txt.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for number, formula in enumerate(file):
            yield f"{split}/{number}.png", formula.strip()


def _crohme(name: str) -> ImageList:
    """Return a part. Half of the validation formulas are in the training part too, in other handwriting, and are left out."""
    archive = DATA / f"crohme_png/{'test' if name == 'test' else 'train'}.zip"
    rows = _crohme_rows(name) if name != "dev" else _new_to_crohme(_crohme_rows(name))
    return _listed(f"crohme_{name}", archive, rows, slice(None))


def _crohme_rows(name: str) -> Iterator[tuple[str, str]]:
    """Return names and formulas. Names of the test are relative to the archive, names of training to `train`."""
    file, before = {
        "train": ("gt_split/train.tsv.gz", "train/"),
        "dev": ("gt_split/validation.tsv.gz", "train/"),
        "test": ("groundtruth_2014.tsv", "test/2014/"),
    }[name]
    for line in LineReader(str(DATA / "crohme_png" / file)):
        image, _, formula = line.partition("\t")
        yield f"{before}{image}.png", formula.strip()


def _new_to_crohme(rows: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Return the rows whose formula is not in the training set."""
    symbols = TARGETS["crohme"].encode
    known = {tuple(symbols(formula)) for _, formula in _crohme_rows("train")}
    yield from (row for row in rows if tuple(symbols(row[1])) not in known)


def _listed(name: str, archive: Path, rows: Iterable[tuple[str, str]], chosen: slice) -> ImageList:
    """Return a list of images in an archive with their formulas; only the first call reads the rows and writes it."""
    path = ROOT / f".cache/lists/{name}.tsv"
    if not path.exists():
        with zipfile.ZipFile(archive) as opened:
            there = set(opened.namelist())
        lines = [f"{image}\t{text}\n" for image, text in rows if image in there and text]
        write_whole(path, lines[chosen])
    return image_list(path, archive)
