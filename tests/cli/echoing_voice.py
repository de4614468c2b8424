"""A voice of sherpa-onnx whose samples are the ids of the tokens that it is asked to speak, divided by 1000."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_ABOUT = {
    "model_type": "vits",
    "comment": "ljs",
    "language": "English",
    "add_blank": "0",
    "n_speakers": "1",
    "sample_rate": "8000",
    "punctuation": ", . ! ?",
}
_SCALES = ("noise_scale", "length_scale", "noise_scale_w")


def write_voice(model: Path, table: Path, tokens: Sequence[str]) -> None:
    """Write the graph, and the table of tokens: 0 is padding, then the tokens, and last the space between words."""
    lines = ["_ 0", *(f"{token} {number}" for number, token in enumerate(tokens, 1))]
    table.write_text("\n".join([*lines, f" {len(lines)}"]) + "\n", encoding="utf-8")
    nodes = [
        helper.make_node("Cast", ["x"], ["ids"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["ids", "thousand"], ["samples"]),
        helper.make_node("Cast", ["x_length"], ["length"], to=TensorProto.FLOAT),
        # A runtime may not remove an input that a voice has.
        *(
            helper.make_node("Mul", [name, "zero"], [f"{name}_unused"])
            for name in (*_SCALES, "length")
        ),
        helper.make_node("Sum", ["samples", *(f"{name}_unused" for name in (*_SCALES, "length"))], ["sum"]),
        helper.make_node("Unsqueeze", ["sum", "axis"], ["y"]),
    ]  # fmt: skip
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.INT64, ["N", "L"]),
        helper.make_tensor_value_info("x_length", TensorProto.INT64, ["N"]),
        *(helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in _SCALES),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1, "L"])]
    constants = [
        numpy_helper.from_array(np.array(1000, np.float32), "thousand"),
        numpy_helper.from_array(np.array(0, np.float32), "zero"),
        numpy_helper.from_array(np.array([1]), "axis"),
    ]
    graph = helper.make_graph(nodes, "voice", inputs, outputs, constants)
    opset = [helper.make_opsetid("", 13)]
    voice = helper.make_model(graph, opset_imports=opset, ir_version=8)
    for key, value in _ABOUT.items():
        entry = voice.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.save(voice, model)
