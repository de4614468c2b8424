"""Bundles written by a version of the library, with their answers.

python -m tests.tasks.stored tagging     writes tests/fixtures/bundles/<version>/tagging, or without a name
                                         every kind; never for a version that is released
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch

import foveal
from foveal.bundles import save_bundle
from foveal.data import Example
from foveal.tasks import PredictionSpec
from tests.tasks.tiny import (
    Task,
    documents,
    opinions,
    pairs,
    sentences,
    stories,
    tasks,
    train,
    upper_cased,
)

BUNDLES = Path(__file__).resolve().parents[1] / "fixtures" / "bundles"
ANSWERS = "answers.json"
INPUTS = {
    "transduction": ["abc", "edcba", "a", "", "xyz"],
    "classification": ["the good old ship", "a cat", "", "unseen words"],
    "documents": ["the good old ship\na cat", "a cat", "", "unseen words"],
    "pair_classification": ["the good old ship\tgood ship", "a cat\tthe ship", "\t", "un\tseen"],
    "tagging": ["the good old ship", "a cat", "", "unseen words"],
    "language_modeling": ["abc", "edcba", "ee", "zz"],
    "question_answering": ["Ann went to the barn.\nBob went home.\nWhere is Bob?", "Who?", ""],
}


def answers(kind: str, task: Task) -> Any:
    """Return the answers of a task to its inputs, as JSON data."""
    examples = [Example(text) for text in INPUTS[kind]]
    if kind == "language_modeling":  # its samples depend on torch's generator
        return [task.evaluate([example]).value for example in examples]
    settings = PredictionSpec(nbest=3, trace=True)
    return [
        {
            "nbest": [list(candidate) for candidate in prediction.nbest],
            "symbols": list(prediction.token_probabilities),
            "trace": None if prediction.trace is None else json.loads(prediction.trace.to_json()),
        }
        for prediction in task.predict(examples, settings)
    ]


def main() -> None:
    """Train one task of every kind for a few steps, and store it with its answers."""
    torch.set_num_threads(1)
    examples = {
        "transduction": upper_cased(200),
        "classification": opinions(60),
        "documents": documents(60),
        "pair_classification": pairs(60),
        "tagging": sentences(60),
        "language_modeling": upper_cased(60),
        "question_answering": stories(60),
    }
    chosen = sys.argv[1:] or list(examples)
    for kind, task in tasks().items():
        if kind not in chosen:
            continue
        train(task, examples[kind], epochs=8, rate=1e-2)
        task.model.eval()
        task.calibrate(examples[kind])
        folder = BUNDLES / foveal.__version__ / kind
        save_bundle(task, folder)
        (folder / ANSWERS).write_text(json.dumps(answers(kind, task), indent=1) + "\n")


if __name__ == "__main__":
    main()
