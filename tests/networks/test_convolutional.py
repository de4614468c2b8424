"""The convolutional encoder equals torch's convolution, and reads exactly the tokens within its reach."""

import pytest
import torch
from torch import nn
from torch.nn.functional import conv1d, glu
from torch.testing import assert_close

from foveal.data import Example
from foveal.errors import ValueRangeError
from foveal.models import ClassifierSpec, ConvolutionalEncoderSpec, Seq2SeqSpec
from foveal.networks import ConvolutionalEncoder
from foveal.networks.encoders._convolutional import ConvolutionalLayer
from foveal.specs import with_setting
from foveal.tasks import ClassificationSpec
from tests.tasks.tiny import train


@pytest.mark.parametrize("distance", [1, 2])
def test_a_layer_equals_the_convolution_of_torch(distance: int) -> None:
    torch.manual_seed(0)
    encoder = ConvolutionalEncoder(nn.Embedding(9, 4), 6, num_layers=2, kernel_size=5, dilated=True)
    layer, rows = encoder.layers[distance - 1], torch.randn(2, 7, 6)
    assert isinstance(layer, ConvolutionalLayer)
    assert layer.distance == distance
    weight = layer.window.weight.unflatten(1, (5, 6)).movedim(1, 2)  # (outputs, inputs, kernel)
    scores = conv1d(
        layer.norm(rows).mT, weight, layer.window.bias, padding=2 * distance, dilation=distance
    )
    assert_close(layer(rows, None), rows + glu(scores, 1).mT)


@pytest.mark.parametrize(("dilated", "reach"), [(False, 3), (True, 7)])
def test_a_value_depends_on_the_tokens_within_reach(dilated: bool, reach: int) -> None:
    torch.manual_seed(0)
    encoder = ConvolutionalEncoder(nn.Embedding(9, 4), 6, num_layers=3, dilated=dilated).eval()
    tokens = torch.randint(8, (1, 21))
    other = tokens.clone()
    other[0, 10] = 8
    changed = (encoder(tokens).values != encoder(other).values).any(-1)[0].nonzero().flatten()
    assert encoder.reach == reach
    assert changed.tolist() == list(range(10 - reach, 10 + reach + 1))


def test_an_even_kernel_is_refused() -> None:
    with pytest.raises(ValueRangeError, match=r"must be odd, got 4\. Set it to 5"):
        ConvolutionalEncoderSpec(kernel_size=4).build(9)


def test_a_setting_chooses_convolutions() -> None:
    spec = with_setting(Seq2SeqSpec(), "encoder", "convolutional")
    spec = with_setting(spec, "encoder.dilated", "true")
    assert spec.encoder == ConvolutionalEncoderSpec(dilated=True)


def test_a_classifier_learns_the_order_of_two_words() -> None:
    """The label is whether "a b" occurs; the words of both classes are the same."""
    texts = ["x a b y", "x b a y", "a b x y", "b a x y", "y x a b", "y x b a"]
    examples = [Example(text, "yes" if "a b" in text else "no") for text in texts] * 10
    encoder = ConvolutionalEncoderSpec(embedding_size=8, size=8, num_layers=1, dropout=0.0)
    model = ClassifierSpec(encoder=encoder, pooling="max", dropout=0.0)
    torch.manual_seed(0)
    task = ClassificationSpec(model=model).build_from(examples)
    train(task, examples, epochs=10, rate=3e-2, batch_size=20)
    task.model.eval()
    assert task.evaluate(examples[:6]).value == 100
