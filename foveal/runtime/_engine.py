"""ONNX Runtime, one session for each model."""

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from ._errors import ExportedModelError


@final
class Engine:
    """A graph that is ready to run.

    Args:
        graph: The bytes of the file of the graph.
        threads: Number of threads of one run.
    """

    def __init__(self, graph: bytes, threads: int = 1) -> None:
        try:
            # The text functions of this package work without it.
            import onnxruntime  # noqa: PLC0415
        except ImportError as error:
            raise ExportedModelError(
                "answering needs the package onnxruntime, which is not installed. Install it: "
                'pip install "foveal-runtime[onnx]".'
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        # Otherwise idle threads would wait for work at full speed.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(
                graph, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise ExportedModelError(
                f"ONNX Runtime cannot load the graph: {str(error)[:300]}. Export the model again, or install "
                f"onnxruntime 1.17 or newer."
            ) from error
        self.outputs: tuple[str, ...] = tuple(each.name for each in self._session.get_outputs())

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Run the graph.

        Args:
            inputs: Arrays by name.

        Returns:
            The outputs by name.
        """
        found = self._session.run(list(self.outputs), dict(inputs))
        return dict(zip(self.outputs, found, strict=True))
