"""The spec of convolutional text encoders."""

from dataclasses import dataclass
from typing import Literal, final

from torch import nn
from typing_extensions import override

from ...networks import AbstractEncoder, ConvolutionalEncoder
from ...specs import setting
from ._encoder_spec import AbstractEncoderSpec, Embed


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ConvolutionalEncoderSpec(AbstractEncoderSpec):
    """Embeddings, and layers of convolutions over them."""

    kind: Literal["convolutional"] = "convolutional"
    embedding_size: int = setting(128, "width of a token's vector", at_least=1)
    size: int = setting(256, "width of a position's value", at_least=1)
    num_layers: int = setting(4, "number of convolutions", at_least=1)
    kernel_size: int = setting(3, "tokens that a convolution reads, an odd number", at_least=1)
    dilated: bool = setting(
        False, "double the distance between these tokens from layer to layer (Yu and Koltun 2016)"
    )
    gated: bool = setting(True, "gates on the outputs (Dauphin et al. 2017); false: ReLU")
    residual: bool = setting(True, "residual connections around layers (He et al. 2016)")
    dropout: float = setting(
        0.2, "dropout of the embeddings and of the output of each layer", at_least=0, at_most=1
    )

    @override
    def build(self, vocabulary: int) -> AbstractEncoder:
        """Build the encoder for tokens 0 to `vocabulary` - 1."""
        return self.build_on(lambda size: nn.Embedding(vocabulary, size))

    @override
    def build_on(self, embed: Embed) -> AbstractEncoder:
        """Build the encoder on the vectors from `embed`, of width `embedding_size`."""
        return ConvolutionalEncoder(
            embed(self.embedding_size),
            self.size,
            num_layers=self.num_layers,
            kernel_size=self.kernel_size,
            dilated=self.dilated,
            gated=self.gated,
            residual=self.residual,
            dropout=self.dropout,
        )
