"""Tasks for a prepared corpus, which fixes their vocabularies."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from ..data import Encoded, Example
from ..data.streams._prepared import PreparedCorpus
from ..data.vocabularies._vocabularies import Vocabularies
from ..errors import SpecError
from ._specs import TaskSpec
from .base._task import AbstractTask


def corpus_data(
    task: AbstractTask[Any], sample: Sequence[Example], parts: Sequence[str], num_examples: int
) -> dict[str, Any]:
    """Return the content of corpus.json for a corpus that this task has encoded.

    Args:
        task: The task that encoded the corpus.
        sample: Some examples. A task that trains on the corpus must encode them equally.
        parts: The files, in order.
        num_examples: The total number of examples.

    Returns:
        The content as JSON values.
    """
    rows = [
        {
            "example": asdict(replace(example, source=str(example.source), where=None)),
            "ids": _ids(task.encode(example)),
        }
        for example in sample
    ]
    return {
        "examples": num_examples,
        "parts": list(parts),
        "sample": rows,
        "vocabularies": task.vocabularies.to_data(),
    }


def build_for_corpus(spec: TaskSpec, corpus: PreparedCorpus) -> AbstractTask[Any]:
    """Build the task with the vocabularies of a corpus and fresh weights. Raises an error if the task would encode the
    examples differently.
    """
    if spec.inputs.picture:
        raise SpecError(
            f"{corpus.path}: a prepared corpus contains texts, expected images for {spec.kind}. Use "
            f"files that list images."
        )
    about = corpus.about()
    task: AbstractTask[Any] = spec.build(Vocabularies.from_data(about["vocabularies"]))
    for row in about["sample"]:
        example = Example(**row["example"])
        ids = {name: column for name, column in row["ids"].items() if column}
        if _ids(task.encode(example)) != ids:
            raise SpecError(
                f"{corpus.path}: this task encodes {str(example.source)[:40]!r} differently from the "
                f"prepared corpus, expected the same token ids. Prepare the corpus again with the "
                f"same tokenizer settings, or keep the original settings."
            )
    return task


def _ids(encoded: Encoded) -> Mapping[str, list[int]]:
    return {name: list(column) for name, column in encoded.columns.items() if column}
