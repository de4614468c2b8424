"""Models that write: the loss and the search steps agree with the log-probabilities."""

from typing import Any

import pytest
import torch
from torch import Tensor

from foveal.errors import ValueRangeError
from foveal.models import (
    CaptionerSpec,
    DecoderSpec,
    DotSpec,
    ImageEncoderSpec,
    LatentHardSpec,
    LatentMonotoneSpec,
    RecurrentSpec,
    SegmentSpec,
    Seq2Seq,
    Seq2SeqSpec,
    SoftmaxSpec,
    SyntacticSpec,
    TextEncoderSpec,
    WordEncoderSpec,
)
from foveal.models._encoder_decoder import AbstractEncoderDecoder
from foveal.networks import SelfAttentiveEncoder

pytestmark = pytest.mark.slow

SOURCE = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 99]])  # 99 is padding
SOURCE_MASK = torch.tensor([[True, True, True, True], [True, True, True, False]])
TOKENS = torch.tensor([[2, 4, 5], [2, 6, -1]])
TARGETS = torch.tensor([[4, 5, 3], [6, 3, -7]])
MASK = torch.tensor([[True, True, True], [True, True, False]])


def seq2seq(**choices: Any) -> Seq2Seq:
    torch.manual_seed(0)
    return Seq2SeqSpec(
        encoder=TextEncoderSpec(embedding_size=5, hidden_size=4),
        decoder=DecoderSpec(embedding_size=5, hidden_size=6, **choices),
    ).build(source_vocabulary=9, target_vocabulary=7)


def captioner() -> AbstractEncoderDecoder:
    torch.manual_seed(0)
    encoder = ImageEncoderSpec(num_channels=1, sizes=(3, 4))
    decoder = DecoderSpec(embedding_size=5, hidden_size=6)
    return CaptionerSpec(encoder=encoder, decoder=decoder).build(vocabulary=7)


MODELS = {
    "softmax": lambda: (seq2seq(), SOURCE, SOURCE_MASK),
    "feeding": lambda: (seq2seq(input_feeding=True), SOURCE, SOURCE_MASK),
    "before": lambda: (seq2seq(attend="before"), SOURCE, SOURCE_MASK),
    "segment": lambda: (seq2seq(attention=SegmentSpec()), SOURCE, SOURCE_MASK),
    "exact hard": lambda: (seq2seq(attention=LatentHardSpec()), SOURCE, SOURCE_MASK),
    "monotone": lambda: (seq2seq(attention=LatentMonotoneSpec()), SOURCE, SOURCE_MASK),
    "plain": lambda: (seq2seq(attention=None), SOURCE, SOURCE_MASK),
    "captioner": lambda: (captioner(), torch.rand(2, 1, 8, 8), None),
}


def likelihoods(model: AbstractEncoderDecoder, source: Tensor, mask: Tensor | None) -> Tensor:
    """Return log p of every target, from the whole table."""
    log_probs = model(source, mask, TOKENS, MASK).log_probs
    found = log_probs.gather(-1, TARGETS.masked_fill(~MASK, 0).unsqueeze(-1)).squeeze(-1)
    return found.masked_fill(~MASK, 0.0)


@pytest.mark.parametrize("name", MODELS)
def test_the_loss_is_that_of_the_log_probabilities(name: str) -> None:
    model, source, source_mask = MODELS[name]()
    model.eval()
    scored = model.score(source, source_mask, TOKENS, TARGETS, MASK)
    expected = likelihoods(model, source, source_mask)
    torch.testing.assert_close(scored.log_prob, expected)
    torch.testing.assert_close(scored.loss, -expected)
    smooth = model.score(source, source_mask, TOKENS, TARGETS, MASK, label_smoothing=0.1)
    log_probs = model(source, source_mask, TOKENS, MASK).log_probs
    torch.testing.assert_close(smooth.loss, -0.9 * expected - 0.1 * log_probs.mean(-1))
    assert (scored.weights is None) == (name == "plain")
    scored.loss.sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_a_search_steps_through_the_same_probabilities(name: str) -> None:
    model, source, source_mask = MODELS[name]()
    model.eval()
    whole, prepared = model(source, source_mask, TOKENS, MASK), model.prepare()
    stepper = model.stepper()
    assert stepper.num_tokens == model.num_tokens == 7
    for state in (model.start(source, source_mask), prepared.start(source, source_mask)):
        assert stepper.batch_size(state) == 2
        for steps in (stepper, prepared.stepper):
            at = state
            for t in range(2):
                at, log_probs, _ = steps.step(at, TOKENS[:, t : t + 1])
                torch.testing.assert_close(log_probs[:, 0], whole.log_probs[:, t])


def test_features_are_places_of_their_own() -> None:
    spec = Seq2SeqSpec()
    model = spec.build(source_vocabulary=9, target_vocabulary=7, num_features=4).eval()
    features, features_mask = (
        torch.tensor([[3, 1], [2, 88]]),
        torch.tensor([[True, True], [True, False]]),
    )
    source = model.with_features(features, features_mask, SOURCE, SOURCE_MASK)
    assert source.tokens[0].tolist() == [12, 10, 1, 2, 3, 4]
    unrolled = model(*source, TOKENS, MASK)
    assert unrolled.weights is not None
    assert unrolled.weights.shape == (2, 3, 6)
    assert (unrolled.weights[1, :2, 0] > 0).all()
    assert not unrolled.weights[1, :2, 1].any()  # padding among the features
    other = model.with_features(features + 1, features_mask, SOURCE, SOURCE_MASK)
    assert other.tokens[0, 0] == 13
    with pytest.raises(ValueRangeError, match="source must hold tokens 0 to 12, got 13"):
        model(*other, TOKENS, MASK)
    changed = model.with_features(features.flip(0), features_mask, SOURCE, SOURCE_MASK)
    assert not torch.equal(
        model(*changed._replace(tokens=changed.tokens.clamp(max=12)), TOKENS, MASK).log_probs,
        unrolled.log_probs,
    )
    with pytest.raises(ValueRangeError, match=r"built without features.*num_features="):
        seq2seq().with_features(features, features_mask, SOURCE, SOURCE_MASK)


def test_errors_say_what_to_do() -> None:
    model = seq2seq()
    with pytest.raises(
        ValueRangeError, match=r"source must hold tokens 0 to 8, got 99\. Encode with"
    ):
        model(SOURCE, None, TOKENS, MASK)
    with pytest.raises(ValueRangeError, match="tokens must hold tokens 0 to 6, got -1"):
        model(SOURCE, SOURCE_MASK, TOKENS)
    with pytest.raises(ValueRangeError, match="targets must hold tokens 0 to 6, got -7"):
        model.score(SOURCE, SOURCE_MASK, TOKENS.clamp(min=0), TARGETS)
    with pytest.raises(ValueRangeError, match="source must hold tokens 0 to 8, got 99"):
        model.eval().prepare().start(SOURCE)
    model.train()
    with pytest.raises(ValueRangeError, match=r"evaluation mode.*eval\(\)"):
        model.stepper()


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        ({"attention": None, "input_feeding": True}, "input_feeding to false"),
        ({"attention": LatentMonotoneSpec(), "input_feeding": True}, "one for every position"),
        ({"attention": LatentHardSpec(), "attend": "before"}, "attend to after"),
        ({"attention": None, "attend": "before"}, "set attend to after"),
        ({"attention": None, "bridge": "learned"}, "nothing of the source"),
        ({"attend": "before", "input_feeding": True}, "input_feeding to false"),
        ({"deep_output": True}, "Set attend to before"),
        ({"attend": "before", "tie_embeddings": True}, "Set embedding_size to"),
        ({"attention": LatentHardSpec(), "input_feeding": True}, "input_feeding to false"),
        ({"attention": None, "bridge": "none"}, "nothing of the source reaches the decoder"),
        (
            {"attention": None, "tie_embeddings": True},
            "Set embedding_size to 6, or tie_embeddings to false",
        ),
        ({"attention": SoftmaxSpec(scorer=DotSpec())}, "6 and 8.*bilinear.*hidden_size 8"),
    ],
)
def test_choices_that_do_not_go_together_are_refused(choices: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        seq2seq(**choices)


def test_states_serve_self_attention() -> None:
    with pytest.raises(ValueRangeError, match=r"no self_attention.*set states to none"):
        WordEncoderSpec(states=RecurrentSpec()).build(9)


def test_an_encoder_shows_its_trees() -> None:
    spec = TextEncoderSpec(hidden_size=4, self_attention=SyntacticSpec())
    encoder = spec.build(9).eval()
    assert isinstance(encoder, SelfAttentiveEncoder)
    attended = encoder.attend(SOURCE, SOURCE_MASK)
    heads = attended.distribution.argmax()
    assert heads.shape[0] == 2
    assert attended.weights.shape == (2, 4, 4)
    assert not attended.weights[1, 3].any()


def accuracy(model: Seq2Seq, source: Tensor, targets: Tensor, begin: Tensor) -> float:
    """Return the fraction of texts written without an error, with each output token fed back."""
    model.eval()
    stepper, state = model.stepper(), model.start(source)
    tokens, right = begin, torch.ones(len(source), dtype=torch.bool)
    for t in range(targets.shape[1]):
        state, log_probs, _ = stepper.step(state, tokens)
        tokens = log_probs.argmax(-1)
        right &= tokens[:, 0] == targets[:, t]
    return right.double().mean().item()


def test_a_seq2seq_learns_to_reverse() -> None:
    """The model writes unseen texts without teacher forcing; its attention runs backwards."""
    torch.manual_seed(0)
    model = Seq2SeqSpec(
        encoder=TextEncoderSpec(embedding_size=16, hidden_size=32, dropout=0.0),
        decoder=DecoderSpec(embedding_size=16, hidden_size=32, dropout=0.0),
    ).build(source_vocabulary=8, target_vocabulary=8)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(150):
        source = torch.randint(1, 8, (32, 5))
        targets = source.flip(1)
        read = torch.cat([torch.zeros_like(targets[:, :1]), targets[:, :-1]], 1)
        loss = model.score(source, None, read, targets).loss.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    source = torch.randint(1, 8, (100, 5))
    assert accuracy(model, source, source.flip(1), torch.zeros(100, 1, dtype=torch.long)) > 0.9


def test_a_captioner_learns_to_say_where() -> None:
    torch.manual_seed(0)
    decoder = DecoderSpec(embedding_size=8, hidden_size=16, dropout=0.0)
    encoder = ImageEncoderSpec(num_channels=1, sizes=(8, 8))
    model = CaptionerSpec(encoder=encoder, decoder=decoder).build(vocabulary=5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def scenes(count: int) -> tuple[Tensor, Tensor]:
        """Return images with a bright square in one quarter, and the words for its row and column."""
        rows, columns = torch.randint(2, (2, count)).unbind(0)
        images = 0.1 * torch.rand(count, 1, 8, 8)
        for image, row, column in zip(images, rows.tolist(), columns.tolist(), strict=True):
            image[0, 4 * row + 1 : 4 * row + 3, 4 * column + 1 : 4 * column + 3] = 1.0
        return images, torch.stack([1 + rows, 3 + columns], 1)

    for _ in range(150):
        images, words = scenes(32)
        read = torch.cat([torch.zeros_like(words[:, :1]), words[:, :1]], 1)
        loss = model.score(images, None, read, words).loss.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    images, words = scenes(64)
    model.eval()
    stepper, state = model.stepper(), model.start(images)
    _, log_probs, weights = stepper.step(state, torch.zeros(64, 1, dtype=torch.long))
    assert (log_probs[:, 0].argmax(-1) == words[:, 0]).double().mean() > 0.9
    assert weights is not None
    assert weights.shape == (64, 1, 4)
