"""Visual question answering: an image and a question about it in, one of a set of answers out.

    q = summary of encoder(question),   x = grid of the image
    c = attention(q, x), or the mean of x without attention
    m = relu( (1 + G norm(q)) * A norm(c) + B norm(q) )               the question modulates c, or
        relu( A [norm(c); norm(q)] )                                  both are concatenated
    log p(answer) = log_softmax( W relu( U m ) )

Both c and q are normalized. In mostly empty images, the differences between images are only a few
hundredths of c, and a product with the small values of an untrained q would remove this signal.

References: Agrawal et al. 2015 (concatenation); Lu et al. 2016; Yang et al. 2016 (attention to the relevant part of an image); Perez et al. 2018
(feature-wise linear modulation).

Axes: B questions, P images, C channels, h and w height and width, S tokens of the question, K answers, R
cells of the grid, V, Q and H widths of c, q and m.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ..attention import Attended, Attention
from ..batch_invariant import Linear
from ..networks import AbstractEncoder
from ..networks._bridges import summary_of
from ..specs import check, setting
from ._checks import check_batch, check_sizes, checked_tokens
from .parts._attention_specs import PerQueryAttentionSpec, SoftmaxSpec
from .parts._backbone_spec import BackboneSpec
from .parts._encoder_specs import TextEncoderSpec
from .parts._image_spec import AbstractImageEncoderSpec
from .parts._vision_specs import ImageEncoderSpec

Fusion: TypeAlias = Literal["modulation", "concatenation"]


class LookedUp(NamedTuple):
    """The answer probabilities, and the attention over the image."""

    log_probs: Float[Tensor, "B K"]
    attended: Attended | None

    @property
    def weights(self) -> Float[Tensor, "B R"] | None:
        """Return the weight of each cell of the grid; None without attention."""
        return None if self.attended is None else self.attended.weights.squeeze(-2)


@final
class VQAModel(nn.Module):
    """Computes log-probabilities of the answers from images `(B, C, h, w)` and questions `(B, S)`.

    Args:
        image: Encodes an image as a grid.
        question: Encodes a question; its summary is the query of the attention.
        attention: Attention over the grid; None reads the mean of the grid.
        vocabulary: Number of tokens of questions.
        num_answers: Number of answers.
        hidden_size: Width of the layers before the answer.
        dropout: Dropout probability of the joint vector of image and question.
        fusion: How image and question become one vector: `"modulation"` or `"concatenation"`.

    Examples:
        >>> reader = VQAModelSpec().build(vocabulary=30, num_answers=5)
        >>> found = reader(torch.rand(2, 3, 32, 24), None, torch.randint(30, (2, 7)), None)
        >>> found.log_probs.shape, found.weights.shape
        (torch.Size([2, 5]), torch.Size([2, 12]))
    """

    def __init__(
        self,
        image: AbstractEncoder,
        question: AbstractEncoder,
        attention: Attention | None,
        *,
        vocabulary: int,
        num_answers: int,
        hidden_size: int,
        dropout: float = 0.0,
        fusion: Fusion = "modulation",
    ) -> None:
        super().__init__()
        self.image, self.question, self.attention = image, question, attention
        self.vocabulary = vocabulary
        self.image_norm = nn.LayerNorm(image.value_size)
        self.question_norm = nn.LayerNorm(question.summary_size)
        self.fusion: Fusion = fusion
        if fusion == "modulation":
            self.of_image = Linear(image.value_size, hidden_size)
            self.scale = Linear(question.summary_size, hidden_size)
            self.shift = Linear(question.summary_size, hidden_size)
        else:
            self.of_both = Linear(image.value_size + question.summary_size, hidden_size)
        self.hidden = Linear(hidden_size, hidden_size)
        self.output = Linear(hidden_size, num_answers)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        images: Float[Tensor, "P C h w"],
        images_mask: Bool[Tensor, "P h w"] | None,
        question: Int[Tensor, "B S"],
        question_mask: Bool[Tensor, "B S"] | None,
        about: Int[Tensor, " B"] | None = None,
    ) -> LookedUp:
        """Answer one question for each image, or several with `about`, the image index of each question.

        Every image is encoded once.
        """
        asked_of = images.shape[:1] if about is None else about.shape
        check_batch("VQAModel", images=asked_of, question=question.shape[:1])
        with checked_tokens("VQAModel", self.vocabulary, question_mask, question=question):
            asked = summary_of(self.question(question, question_mask))
        memory, attended = self.image(images, images_mask), None
        if self.attention is None:
            context = summary_of(memory)
            context = context if about is None else context[about]
        else:
            memory = self.attention.remember(memory)
            memory = memory if about is None else memory.take(about)
            attended = self.attention(asked.unsqueeze(-2), memory)
            context = attended.context.squeeze(-2)
        joint = self._joint(self.image_norm(context), self.question_norm(asked))
        hidden = torch.relu(self.hidden(self.dropout(joint)))
        return LookedUp(self.output(hidden).log_softmax(-1), attended)

    def _joint(
        self, seen: Float[Tensor, "B V"], asked: Float[Tensor, "B Q"]
    ) -> Float[Tensor, "B H"]:
        """Combine what the question reads of the image with the question."""
        if self.fusion == "concatenation":
            return torch.relu(self.of_both(torch.cat([seen, asked], -1)))
        return torch.relu((1 + self.scale(asked)) * self.of_image(seen) + self.shift(asked))


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class VQAModelSpec:
    """A model that answers a question about an image with one of a set of answers."""

    kind: Literal["vqa_model"] = "vqa_model"
    encoder: ImageEncoderSpec | BackboneSpec | AbstractImageEncoderSpec = setting(
        ImageEncoderSpec(), "encoder of the image"
    )
    question: TextEncoderSpec = setting(TextEncoderSpec(), "encoder of the question")
    attention: PerQueryAttentionSpec | None = setting(
        SoftmaxSpec(), "how the question reads the grid of the image; none: by its mean"
    )
    hidden_size: int = setting(128, "width of the layers before the answer", at_least=1)
    dropout: float = setting(0.0, "dropout of the inputs of the last layers", at_least=0, at_most=1)
    fusion: Fusion = setting("modulation", "how image and question become one vector")

    def build(self, *, vocabulary: int, num_answers: int) -> VQAModel:
        """Build the model with new weights.

        Args:
            vocabulary: Number of tokens of questions.
            num_answers: Number of answers.

        Returns:
            The model, in training mode.
        """
        check(self)
        check_sizes("VQAModel", vocabulary=vocabulary, num_answers=num_answers)
        image, question = self.encoder.build(), self.question.build(vocabulary)
        attention = None
        if self.attention is not None:
            attention = self.attention.build(question.summary_size, image.value_size)
        return VQAModel(
            image,
            question,
            attention,
            vocabulary=vocabulary,
            num_answers=num_answers,
            hidden_size=self.hidden_size,
            dropout=self.dropout,
            fusion=self.fusion,
        )
