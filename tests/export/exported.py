"""Tasks with random weights, their graphs, and their exported folders."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

from foveal.bundles import save_bundle
from foveal.data import Example
from foveal.export import ExportOptions, Weights, export_bundle, task_graph
from foveal.runtime import Model, load

TOLERANCE = 1e-4
IN_COMPANY = 2e-6  # most operators are equal to the bit in every batch, RNN is not


class Session:
    """A graph that can run."""

    def __init__(self, data: bytes) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3  # warnings about constants of unused parts
        self._session = onnxruntime.InferenceSession(
            data, options, providers=["CPUExecutionProvider"]
        )
        self.names = [each.name for each in self._session.get_outputs()]

    def __call__(self, **inputs: np.ndarray) -> dict[str, Any]:
        return dict(zip(self.names, self._session.run(None, inputs), strict=True))


def enlarge(task: Any) -> None:
    """Set the weights of a model to three times their random values, so that outputs differ, and put it to rest."""
    with torch.no_grad():
        for name, values in task.model.state_dict().items():
            if name.endswith("variance"):
                values.uniform_(0.5, 2.0)
            elif values.ndim < 2:
                values.normal_(std=0.5)
            else:
                values.mul_(3.0).add_(0.3 * torch.randn_like(values))  # transitions begin at 0
    task.model.eval()


def session_of(task: Any) -> Session:
    """Build the graph of a task, and check it."""
    weights = Weights({name: each.numpy() for name, each in task.model.state_dict().items()})
    return Session(task_graph(task.spec, weights).model().SerializeToString())


def exported(
    task: Any, examples: Sequence[Example], folder: Path, options: ExportOptions | None = None
) -> Model:
    """Export a task and load it with the runtime."""
    save_bundle(task, folder / "run")
    done = export_bundle(folder / "run", folder / "export", examples, options)
    assert done.num_tested == len(examples)
    model = load(folder / "export")
    assert model.self_test() == len(examples)
    return model


def check_answers(task: Any, model: Model, examples: Sequence[Example]) -> None:
    """Compare all candidates, confidences, probabilities and attention weights, alone and in a batch."""
    nbest = task.prediction.beam_size
    sources = [str(example.source) for example in examples]
    together = model.predict(sources, nbest=nbest, attention=True)
    expected = task.predict(examples, replace(task.prediction, nbest=nbest, trace=True))
    for source, found, right in zip(sources, together, expected, strict=True):
        assert [each.output for each in found.nbest] == [each.output for each in right.nbest]
        assert found.output == found.nbest[0].output
        for ours, theirs in zip(found.nbest, right.nbest, strict=True):
            assert abs(ours.score - theirs.score) < TOLERANCE
            assert abs(ours.confidence - theirs.probability) < TOLERANCE
        np.testing.assert_allclose(
            found.token_probabilities, right.token_probabilities, atol=TOLERANCE, rtol=0
        )
        assert (found.attention is None) == (right.trace is None)
        if found.attention is not None:
            assert found.attention.targets == right.trace.targets
            assert found.attention.sources == right.trace.sources
            np.testing.assert_allclose(
                found.attention.weights, right.trace.weights, atol=TOLERANCE, rtol=0
            )
        alone = model.predict(source, nbest=nbest, attention=True)
        assert [each.output for each in alone.nbest] == [each.output for each in found.nbest]
        scores = [each.score for each in alone.nbest]
        np.testing.assert_allclose(
            scores, [each.score for each in found.nbest], atol=IN_COMPANY, rtol=0
        )
