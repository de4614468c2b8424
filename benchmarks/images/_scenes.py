"""Captions of scenes: exact match on unseen combinations, and attention on the named objects.

    results/scene_captions.json

    exact match    on `seen`, scenes with combinations of the training set, and on `pairs`, scenes with a pair
                   of color and shape that is not in the training set
    pointing       attention weight inside the boxes of the object that a word names, at the step that writes
                   the word; mean over words
    chance         fraction of the cells inside these boxes, the weight under uniform attention

A cell counts as inside a box if its center pixel is inside. Only correct words at the position of the
reference are counted, because a wrong word has no box.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foveal.data import Example, Picture
from foveal.tasks import Captioning, Prediction
from recipes import scene_captions

from ._scored import Scored, score_cases

NAME = "scene_captions"
AIMS = {"soft: exact_match": 95.0}
Box = tuple[float, float, float, float]  # left, top, right, bottom


class Pointed(NamedTuple):
    """The fraction of a word's attention on the object that it names, and the fraction by chance."""

    mass: float
    chance: float


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Write the results file, and keep the figures of its other cases."""
    data = {"manifest.json": scene_captions.FOLDER / "manifest.json"}
    score_cases(
        NAME,
        scene_captions.recipe,
        cases,
        seeds,
        (runs, results),
        aims=AIMS,
        more=_more,
        data=data,
    )


def _more(case: str, scored: Scored) -> Mapping[str, tuple[float, str]]:
    del case
    figures = dict[str, tuple[float, str]]()
    for name, part in (("seen", "test"), ("pairs", "held_out_pairs")):
        found = scored.task.evaluate(list(scene_captions.part(part)))
        figures[f"exact_match, {name}"] = (found.statistics["exact_match"].value, "%")
    return figures | _pointing(scored)


def _pointing(scored: Scored) -> dict[str, tuple[float, str]]:
    task = scored.task
    if not isinstance(task, Captioning) or task.attention is None:
        return {}
    boxes = read_boxes(scene_captions.FOLDER / "held_out.boxes.jsonl")
    examples = list(scored.found.examples)
    traced = task.predict(examples, replace(task.prediction, trace=True))
    found = [
        each
        for example, answer in zip(examples, traced, strict=True)
        for each in pointed(task, example, answer, boxes[example.input_as(Picture).name])
    ]
    if not found:
        return {}
    mass, chance = (float(np.mean(side)) for side in zip(*found, strict=True))
    return {"pointing": (100 * mass, "%"), "pointing by chance": (100 * chance, "%")}


def read_boxes(path: Path) -> dict[str, list[list[Box]]]:
    """Read, by image name, the boxes of the objects that each word of the caption names."""
    records = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {Path(record["image"]).name: record["boxes"] for record in records}


def pointed(
    task: Captioning, example: Example, answer: Prediction, boxes: Sequence[Sequence[Box]]
) -> Iterator[Pointed]:
    """Score the words of an answer that name an object and match the reference at their position."""
    trace = answer.trace
    assert trace is not None
    rows, columns = trace.layout.rows, trace.layout.columns
    assert rows is not None
    assert columns is not None
    encoder = task.spec.model.encoder
    shrinking = encoder.shrinking if encoder.kind == "image" else (1, 1)
    y, x = np.mgrid[:rows, :columns]
    y, x = y.ravel() * shrinking[0], x.ravel() * shrinking[1]
    expected = (example.target or "").split()
    for number, (word, weights) in enumerate(zip(trace.targets, trace.weights, strict=True)):
        if number >= len(boxes) or word != expected[number] or not boxes[number]:
            continue
        inside = np.zeros(rows * columns, bool)
        for left, top, right, bottom in boxes[number]:
            inside |= (left <= x) & (x <= right) & (top <= y) & (y <= bottom)
        total = sum(weights)
        if inside.any() and total > 0:
            yield Pointed(float(np.array(weights)[inside].sum()) / total, float(inside.mean()))
