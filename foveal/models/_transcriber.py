"""Transcription model: frames of speech in, a text out.

    memory = pyramid over frames,   p(y) = prod over t of p(y_t | y_<t, memory)        attention
                                    p(y) = sum over paths that spell y of prod over s of p(path_s | memory)    CTC

References: Chan et al. 2016 (listen, attend and spell); Graves et al. 2006 (CTC); Kim et al. 2017 (both, joint training).

Axes: B items of a batch, T frames, D width of a frame, S positions of the memory, W output tokens, L labels.
"""

from dataclasses import dataclass
from typing import Literal, final

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ..attention import Memory
from ..distributions import Alignment
from ..errors import ValueRangeError
from ..inference import ctc_log_partition
from ..networks import AbstractEncoder
from ..networks.decoders._token_decoder import AbstractTokenDecoder
from ..specs import check, setting
from ._checks import check_sizes
from ._encoder_decoder import AbstractEncoderDecoder, Encode
from .parts._decoder_spec import DecoderSpec
from .parts._pyramidal_spec import PyramidalEncoderSpec
from .parts._transformer_decoder_spec import AnyDecoderSpec

BLANK = 0  # the padding token, which no text contains


@final
class Transcriber(AbstractEncoderDecoder):
    """Generates a text from frames of speech with attention, and scores it with CTC if it has a layer for that.

    `source` holds frames `(B, T, D)`; its mask marks the real frames `(B, T)`.

    Args:
        encoder: Maps frames to a memory.
        decoder: Generates the text from the memory.
        frame_scores: Scores of all tokens and of the blank at each position, for CTC; None for attention only.

    Examples:
        >>> import torch
        >>> model = TranscriberSpec().build(num_features=40, vocabulary=14, ctc=True)
        >>> memory = model.encode(torch.rand(2, 100, 40))
        >>> model.ctc(memory, torch.tensor([[4, 5, 6], [7, 7, 8]])).log_partition().shape
        torch.Size([2])
    """

    def __init__(
        self,
        encoder: AbstractEncoder,
        decoder: AbstractTokenDecoder,
        frame_scores: nn.Linear | None = None,
    ) -> None:
        super().__init__(encoder, decoder)
        self.frame_scores = frame_scores

    @override
    def encode_by(
        self,
        encoder: Encode,
        source: Float[Tensor, "B T D"],
        source_mask: Bool[Tensor, "B T"] | None,
    ) -> Memory:
        return encoder(source, source_mask)

    def position_log_probs(self, memory: Memory) -> Float[Tensor, "B S W"]:
        """Compute the log-probabilities of all tokens, and of the blank 0, at each position.

        Args:
            memory: Encoded frames.

        Returns:
            Log-probabilities, which sum to 1 at each position.

        Raises:
            ValueRangeError: If the model has no layer for CTC.
        """
        if self.frame_scores is None:
            raise ValueRangeError(
                "Transcriber: expected a model with CTC, got attention only. Build it with ctc=True."
            )
        return self.frame_scores(memory.values).log_softmax(-1)

    def ctc(
        self,
        memory: Memory,
        labels: Int[Tensor, "B L"],
        mask: Bool[Tensor, "B L"] | None = None,
    ) -> Alignment:
        """Build the CTC alignment of positions and labels; its log-partition is the log-likelihood of the labels.

        Args:
            memory: Encoded frames.
            labels: Tokens of each text, without begin and end.
            mask: True on real labels; None if all are real.

        Returns:
            A distribution over alignments.
        """
        log_probs = self.position_log_probs(memory)
        return Alignment.ctc(
            log_probs, labels, frame_mask=memory.mask, target_mask=mask, blank=BLANK
        )

    def ctc_log_likelihood(
        self,
        memory: Memory,
        labels: Int[Tensor, "B L"],
        mask: Bool[Tensor, "B L"] | None = None,
    ) -> Float[Tensor, " B"]:
        """Compute the log-likelihood of the labels by CTC, faster than `ctc(...).log_partition()`.

        Args:
            memory: Encoded frames.
            labels: Tokens of each text, without begin and end.
            mask: True on real labels; None if all are real.

        Returns:
            Log-likelihood of each text; -inf if the memory has too few positions for it.
        """
        return ctc_log_partition(
            self.position_log_probs(memory), labels, memory.mask, mask, blank=BLANK
        )


def num_needed(labels: Int[Tensor, "B L"], mask: Bool[Tensor, "B L"]) -> Int[Tensor, " B"]:
    """Return the number of positions that CTC needs: one for each label, and a blank between equal labels.

    Args:
        labels: Tokens of each text.
        mask: True on real labels, which come first.

    Returns:
        The minimum number of positions.

    Examples:
        >>> import torch
        >>> num_needed(torch.tensor([[4, 4, 5]]), torch.ones(1, 3, dtype=torch.bool))
        tensor([4])
    """
    repeats = (labels[:, 1:] == labels[:, :-1]) & mask[:, 1:]
    return mask.sum(-1) + repeats.sum(-1)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TranscriberSpec:
    """A model that generates a text from frames of speech."""

    kind: Literal["transcriber"] = "transcriber"
    encoder: PyramidalEncoderSpec = setting(PyramidalEncoderSpec(), "encoder of the frames")
    decoder: AnyDecoderSpec = setting(DecoderSpec(), "decoder of the text", kind_optional=True)

    def build(self, *, num_features: int, vocabulary: int, ctc: bool = False) -> Transcriber:
        """Build the model with new weights.

        Args:
            num_features: Width of a frame.
            vocabulary: Number of output tokens.
            ctc: Whether the model also scores texts with CTC.

        Returns:
            The model, in training mode.
        """
        check(self)
        check_sizes("Transcriber", num_features=num_features, vocabulary=vocabulary)
        encoder = self.encoder.build(num_features)
        decoder = self.decoder.build(vocabulary, encoder.value_size, encoder.summary_size)
        scores = nn.Linear(encoder.value_size, vocabulary) if ctc else None
        return Transcriber(encoder, decoder, scores)
