"""Image encoders and captioning as graphs.

The inputs are images, 0 for white and 1 for black, and the height and the width of each; padding is on the right and at
the bottom. Position i of a grid is real if its row is below the height and its column below the width of the grid.

Batch normalization is part of the convolution before it: scale * (W x + b) + shift = (scale W) x + (scale b + shift).

Axes: B images, C channels, h and w height and width of a grid, S = h w its positions, V width of a value.
"""

from base64 import b64encode
from dataclasses import asdict, replace
from functools import singledispatch
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from ..data import Example, Picture
from ..data._inputs import INLINE
from ..data.images._bytes import IMAGE, media_bytes
from ..errors import ExportError
from ..models import ImageEncoderSpec, SegmentSpec, TransformerDecoderSpec
from ..models.parts._attention_specs import BaseAttentionSpec
from ..models.parts._decoder_spec import AbstractDecoderSpec
from ..runtime._captions import Captioner
from ..runtime._task import Search
from ..specs import to_data
from ..tasks import Captioning, CaptioningSpec
from ..tasks.pictures._pictures import shown
from ._answerer import Asked, asked
from ._models import check_search, task_graph
from ._self_test import portable
from ._settings import task_settings
from .graphs._decoders import decoder_graph
from .graphs._graph import (
    FLOAT,
    INT32,
    INT64,
    Graph,
    Value,
    axes,
    op,
    ops,
    places,
    size,
    squeeze,
    unsqueeze,
)
from .graphs._memory import MemoryGraph, mean_of, without_padding
from .graphs._recurrent import emit_stack
from .graphs._refusal import refusal
from .graphs._search import emit_search, search_settings
from .graphs._transformer import layer_norm
from .graphs._weights import Weights

_EPSILON = 1e-5  # of batch normalization
_UNIT = 64.0  # pixels: the unit of rows and columns as channels


class Images(NamedTuple):
    """Images, or the grid that a stage made of them, with the numbers of their real rows and columns."""

    features: Value  # (B, C, h, w)
    heights: Value  # (B)
    widths: Value  # (B)

    def real(self) -> Value:
        """Compare each position with the sizes of its image.

        Returns:
            True on real positions `(B, 1, h, w)`.
        """
        rows = op("Less", places(self.features, 2), unsqueeze(self.heights, 1))
        columns = op("Less", places(self.features, 3), unsqueeze(self.widths, 1))
        return op("And", unsqueeze(rows, 1, 3), unsqueeze(columns, 1, 2))

    def cleared(self) -> "Images":
        """Set padding to 0.

        Returns:
            Images with the same sizes.
        """
        return self._replace(features=self.features * op("Cast", self.real(), to=FLOAT))

    def divided(self, down: int, right: int) -> "Images":
        """Divide the numbers of real rows and columns, rounded up.

        Args:
            down: Divisor of the heights.
            right: Divisor of the widths.

        Returns:
            Images with the same features.
        """
        return self._replace(
            heights=op("Div", self.heights + (down - 1), down),
            widths=op("Div", self.widths + (right - 1), right),
        )


@task_graph.register
def _(spec: CaptioningSpec, weights: Weights) -> Graph:
    _check_captioning(spec)
    graph = Graph("search")
    pictures = graph.input("images", FLOAT, ["B", spec.image.num_channels, "h", "w"])
    heights, widths = ops(
        "Split", graph.input("sizes", INT64, ["B", 2]), outputs=2, axis=1, num_outputs=2
    )
    settings = search_settings(graph)
    images = Images(pictures, squeeze(heights, 1), squeeze(widths, 1))
    memory = emit_image_encoder(spec.model.encoder, weights.at("encoder"), images)
    decoder = decoder_graph(spec.model.decoder, weights.at("decoder"))
    emit_search(graph, decoder, memory, settings)
    return graph


@task_settings.register
def _(task: Captioning) -> dict[str, Any]:
    """Return the settings of a task; an image becomes (byte / 255 - mean) / std, and 0 on padding."""
    spec = task.spec
    image = {**to_data(spec.image), "mean": 1.0, "std": -1.0, "cell": spec.model.encoder.shrinking}
    return {
        "task": spec.kind,
        "image": image,
        "target": to_data(spec.target),
        "outputs": spec.outputs,
        "attention": task.attention,
        "prediction": asdict(task.prediction),
        "lengths": asdict(task.vocabularies.lengths),
        "calibration": task.calibration.to_data(),
    }


@portable.register
def _(task: Captioning, example: Example) -> Example:
    """Write the image into the text: its pixels as they are read, or its file if reading it again would change them."""
    image = task.spec.image
    if image.trim or image.ink is not None:
        content = media_bytes(example.input_as(Picture).file, image.max_bytes, IMAGE)
    else:
        written = BytesIO()
        pixels = shown(task.picture(example))
        Image.fromarray(pixels if pixels.shape[2] > 1 else pixels[:, :, 0]).save(written, "PNG")
        content = written.getvalue()
    return replace(example, source=f"{INLINE}image/png;base64,{b64encode(content).decode()}")


@asked.register
def _(task: Captioning, exported: Captioner, example: Example, search: Search) -> Asked:
    """Read an image with the cache of the task."""
    return Asked(exported.seen(task.picture(example).numpy(), search), task.layout(example))


@singledispatch
def emit_image_encoder(spec: object, weights: Weights, images: Images) -> MemoryGraph:
    """Encode images; register a function for an encoder of your own.

    Args:
        spec: Spec of the encoder.
        weights: Weights of the encoder.
        images: Images with their sizes.

    Returns:
        The memory: the real positions of a grid, row by row, and padding after them.

    Raises:
        ExportError: There is no graph for this kind of encoder.
    """
    del weights, images
    raise refusal("image encoder", spec)


@emit_image_encoder.register
def _(spec: ImageEncoderSpec, weights: Weights, images: Images) -> MemoryGraph:
    if spec.positions:
        images = _with_positions(images)
    images = images.cleared()
    strides = spec.strides or ((2, 2),) * len(spec.sizes)
    for number, stride in enumerate(strides):
        images = _stage(spec, weights, number, stride, images)
    grid = op("Transpose", images.features, perm=[0, 2, 3, 1])  # (B, h, w, C)
    if spec.rows is not None:
        grid = _along_rows(spec, weights.at("rows"), grid, images)
    return _real_first(grid, images)


def _real_first(grid: Value, images: Images) -> MemoryGraph:
    """Return the real positions of a grid `(B, h, w, V)`, row by row, and padding after them.

    Attentions that count positions, such as local attention, expect no padding between them.
    """
    values = op("Reshape", grid, op("Concat", axes(0, -1), size(grid, 3), axis=0))
    number, columns = places(values, 1), unsqueeze(op("Max", images.widths, 1), 1)
    real = op("Less", number, unsqueeze(images.heights, 1) * columns)  # (B, S)
    cells = op("Div", number, columns) * size(grid, 2) + op("Mod", number, columns)
    cells = op("Where", real, cells, 0)
    values = without_padding(op("GatherND", values, unsqueeze(cells, 2), batch_dims=1), real)
    return MemoryGraph(values, mean_of(values, real), real)


def _with_positions(images: Images) -> Images:
    """Add the row and the column of each pixel as channels."""
    shape = op(
        "Concat", size(images.features, 0), axes(1), op("Shape", images.features, start=2), axis=0
    )
    rows, columns = (op("Cast", places(images.features, axis), to=FLOAT) / _UNIT for axis in (2, 3))
    both = (op("Expand", unsqueeze(rows, 1), shape), op("Expand", columns, shape))
    return images._replace(features=op("Concat", images.features, *both, axis=1))


def _stage(
    spec: ImageEncoderSpec,
    weights: Weights,
    number: int,
    stride: tuple[int, int],
    images: Images,
) -> Images:
    """Run one stage: a convolution, a pool, and blocks."""
    by_stride = spec.downsampling == "stride"
    found = _convolved(
        images.features,
        weights.at(f"convolutions.{number}"),
        weights.at(f"norms.{number - 1}") if number else None,
        spec.norm,
        stride if by_stride else (1, 1),
    )
    images = images._replace(features=op("Relu", found))
    if by_stride:
        images = images.divided(*stride).cleared()
    else:
        images = _pooled(spec, images.cleared(), stride)
    for block in range(spec.blocks):
        images = _block(spec, weights.at(f"blocks.{number}.blocks.{block}"), images)
    return images


def _block(spec: ImageEncoderSpec, weights: Weights, images: Images) -> Images:
    """Run two convolutions, and add their output to their input or replace it."""
    first, second = (
        (weights.at(name), weights.at(f"{name}_norm"), spec.norm, (1, 1))
        for name in ("first", "second")
    )
    inner = images._replace(features=op("Relu", _convolved(images.features, *first))).cleared()
    change = _convolved(inner.features, *second)
    after = images.features + change if spec.residual else op("Relu", change)
    return images._replace(features=after).cleared()


def _convolved(
    features: Value,
    weights: Weights,
    norm: Weights | None,
    kind: str,
    stride: tuple[int, int],
) -> Value:
    """Return a convolution with its normalization, if there is one."""
    weight, bias = weights["weight"], weights["bias"]
    if norm is not None and kind == "batch":
        scale = norm["weight"] / np.sqrt(norm["variance"] + np.float32(_EPSILON))
        weight = weight * scale[:, None, None, None]
        bias = bias * scale + norm["bias"] - norm["mean"] * scale
    reach = weight.shape[-1] // 2
    found = op("Conv", features, weight, bias, strides=list(stride), pads=[reach] * 4)
    if norm is None or kind == "batch":
        return found
    rows = layer_norm(op("Transpose", found, perm=[0, 2, 3, 1]), norm)
    return op("Transpose", rows, perm=[0, 3, 1, 2])


def _pooled(spec: ImageEncoderSpec, images: Images, window: tuple[int, int]) -> Images:
    """Pool windows of real positions; features are at least 0, and 0 on padding."""
    kind = "MaxPool" if spec.downsampling == "max_pool" else "AveragePool"

    def pool(features: Value) -> Value:
        down, right = (
            op("Mod", 0 - size(features, axis), side)
            for axis, side in zip((2, 3), window, strict=True)
        )
        ends = op("Concat", axes(0, 0, 0, 0, 0, 0), down, right, axis=0)
        padded = op("Pad", features, ends, 0.0)
        return op(kind, padded, kernel_shape=list(window), strides=list(window))

    found = pool(images.features)
    if spec.downsampling == "mean_pool":
        part = pool(op("Cast", images.real(), to=FLOAT))
        found = found / op("Max", part, 1 / (2 * window[0] * window[1]))
    return images._replace(features=found).divided(*window)


def _along_rows(spec: ImageEncoderSpec, weights: Weights, grid: Value, images: Images) -> Value:
    """Run a recurrent network along each row of a grid `(B, h, w, C)`."""
    assert spec.rows is not None
    rows = op("Reshape", grid, op("Concat", axes(-1), op("Shape", grid, start=2), axis=0))
    real = op("Reshape", images.real(), op("Concat", axes(-1), size(grid, 2), axis=0))
    lengths = op("ReduceSum", op("Cast", real, to=INT32), axes(1), keepdims=0)
    found = emit_stack(
        spec.rows,
        weights,
        rows,
        lengths,
        real,
        bidirectional=spec.rows.bidirectional,
        owner="encoder.rows",
    )
    shape = op("Concat", op("Shape", grid, end=3), axes(-1), axis=0)
    return op("Reshape", found.outputs, shape)


def _check_captioning(spec: CaptioningSpec) -> None:
    check_search(spec.prediction)
    if spec.balanced is not None:
        raise ExportError(
            f"balanced has no export yet, expected none, got {' and '.join(spec.balanced)}. Set it to none: "
            f"--set balanced=none."
        )
    for attention in _attentions(spec.model.decoder):
        if isinstance(attention, SegmentSpec):
            raise ExportError(
                "attention to segments has no export over the rows of a grid yet, got decoder.attention segment. Train "
                "the model with another attention, for example --set decoder.attention=softmax."
            )


def _attentions(spec: AbstractDecoderSpec) -> list[BaseAttentionSpec]:
    """Return the attentions of a decoder to its memory."""
    if isinstance(spec, TransformerDecoderSpec):
        layers = range(1, spec.num_layers + 1)
        return [attention for number in layers for attention, _ in spec._heads_of(number)]
    return [] if spec.attention is None else [spec.attention]
