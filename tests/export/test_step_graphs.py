"""A greedy search written over the encoder and step graphs gives the answers of the greedy search of the original."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime
import pytest

from foveal.data import BEGIN, END
from foveal.errors import ExportError
from foveal.export import Weights, step_graphs
from foveal.tasks import TaggingSpec
from tests.export.variants import VARIANTS, WORDS, task_of

pytest.importorskip("onnx")

FORBIDDEN = [0, 1, 2]  # padding, unknown and begin are no outputs
NAMES = [name for name in VARIANTS if "copy" not in name and "feature" not in name]


class Graph:
    """A graph that can run."""

    def __init__(self, data: bytes) -> None:
        self._session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._outputs = [each.name for each in self._session.get_outputs()]

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        # A graph declares only the inputs that it reads.
        inputs = {name: value for name, value in given.items() if name in self._inputs}
        return dict(zip(self._outputs, self._session.run(None, inputs), strict=True))


def greedy(encode: Graph, step: Graph, tokens: list[int], limit: int) -> list[int]:
    """Continue with the most probable token until the end."""
    given = encode(
        {"tokens": np.array([tokens], np.int64), "lengths": np.array([len(tokens)], np.int32)}
    )
    given = {
        name: each[:, None] if name.startswith("state.") else each for name, each in given.items()
    }
    found = list[int]()
    last = BEGIN
    while len(found) < limit:
        given |= {"last": np.array([[last]], np.int64), "number": np.array(len(found), np.int64)}
        stepped = step(given)
        log_probs = stepped["log_probs"][0, 0]
        log_probs[FORBIDDEN] = -np.inf
        last = int(log_probs.argmax())
        if last == END:
            break
        found.append(last)
        for name, each in stepped.items():
            if name.startswith("next."):
                given[f"state.{name[5:]}"] = each
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_search_of_your_own_runs_on_the_step_graphs(name: str) -> None:
    task = task_of(VARIANTS[name])
    tensors = {key: each.numpy() for key, each in task.model.state_dict().items()}
    graphs = step_graphs(task.spec, Weights(tensors))
    encode, step = (Graph(each.SerializeToString()) for each in graphs)
    limit = 6
    words = [word for word in WORDS if word]
    settings = replace(task.prediction, beam_size=1, nbest=1, max_length=limit)
    source, target = task.vocabularies.source, task.vocabularies.target
    assert target is not None
    for word, expected in zip(words, task.predict(words, settings), strict=True):
        tokens = source.encode(task.spec.source.encode(word))
        found = greedy(encode, step, tokens, limit)
        assert task.spec.target.decode(target.decode(found)) == expected.output


def test_a_tagger_has_no_steps() -> None:
    with pytest.raises(ExportError, match="the task tagging has no export"):
        step_graphs(TaggingSpec(), Weights({}))
