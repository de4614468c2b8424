"""How much slower is a training step than the bare engine?

The bare engine is torch's fused LSTM as encoder and as decoder, the output layer and the
cross-entropy, and nothing else: no attention, no masks. Ours are complete models with attention, called
like in training, with the masks of a batch without padding. A step is the loss and its gradient, without
an optimizer.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from foveal.attention import (
    Attention,
    DotScorer,
    segment_attention,
    softmax_attention,
    syntactic_attention,
)
from foveal.models import Seq2Seq
from foveal.networks import (
    AbstractEncoder,
    AttentionDecoder,
    InitialStateBridge,
    InputFeedingDecoder,
    SelfAttentiveEncoder,
    TextEncoder,
    recurrent_stack,
)

from .results import Row
from .timing import Plan, Timing, compare

BARE, ADDITIVE, SEGMENT = "bare", "additive attention", "segment attention"
SYNTACTIC = "additive attention over syntactic self-attention"

# Targets: time relative to the bare engine; for segment attention, relative to the additive model.
TARGETS = {ADDITIVE: 1.3, "additive attention with input feeding": 1.6, "dot attention": 1.15}
SEGMENT_TARGET = 1.25
NATIVE_TARGETS = {SEGMENT: 1.08, SYNTACTIC: 1.25}  # the same, with the C++ kernels


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """The sizes of the model and of a batch."""

    hidden: int = 256
    batch: int = 64
    source: int = 25
    target: int = 12
    vocabulary: int = 8_000

    def __str__(self) -> str:
        return (
            f"hidden {self.hidden}, batch {self.batch}, source {self.source}, "
            f"target {self.target}, vocabulary {self.vocabulary}"
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """Sources, decoder inputs and targets."""

    source: Tensor
    tokens: Tensor
    targets: Tensor

    @classmethod
    def of(cls, sizes: Sizes) -> "Batch":
        """Draw random tokens, the same for all models."""
        generator = torch.Generator().manual_seed(0)

        def draw(length: int) -> Tensor:
            return torch.randint(sizes.vocabulary, (sizes.batch, length), generator=generator)

        return cls(draw(sizes.source), draw(sizes.target), draw(sizes.target))


@final
class Bare(nn.Module):
    """The bare engine."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.source = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.target = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.encoder = nn.LSTM(sizes.hidden, sizes.hidden, batch_first=True)
        self.decoder = nn.LSTM(sizes.hidden, sizes.hidden, batch_first=True)
        self.output = nn.Linear(sizes.hidden, sizes.vocabulary)

    def loss(self, batch: Batch) -> Tensor:
        """Return the mean cross-entropy."""
        _, state = self.encoder(self.source(batch.source))
        hidden, _ = self.decoder(self.target(batch.tokens), state)
        return cross_entropy(self.output(hidden).flatten(0, 1), batch.targets.flatten())


def model_with(
    attention: Attention, sizes: Sizes, *, feeding: bool = False, syntactic: bool = False
) -> Seq2Seq:
    """Return a model of the same sizes with attention, and optionally syntactic attention in the encoder."""
    hidden = sizes.hidden
    encoder: AbstractEncoder = TextEncoder(
        nn.Embedding(sizes.vocabulary, hidden), recurrent_stack(hidden, hidden)
    )
    if syntactic:
        encoder = SelfAttentiveEncoder(encoder, syntactic_attention(hidden, hidden, hidden))
    stack = recurrent_stack(2 * hidden if feeding else hidden, hidden)
    kind = InputFeedingDecoder if feeding else AttentionDecoder
    decoder = kind(
        embedding=nn.Embedding(sizes.vocabulary, hidden),
        stack=stack,
        bridge=InitialStateBridge(hidden, stack),
        attention=attention,
        value_size=encoder.value_size,
        vector_size=hidden,
    )
    return Seq2Seq(encoder, decoder, source_vocabulary=sizes.vocabulary)


def models(sizes: Sizes) -> dict[str, Seq2Seq]:
    """Return all our models."""
    hidden = sizes.hidden
    return {
        ADDITIVE: model_with(softmax_attention(hidden, hidden), sizes),
        "additive attention with input feeding": model_with(
            softmax_attention(hidden, hidden), sizes, feeding=True
        ),
        "dot attention": model_with(softmax_attention(hidden, hidden, DotScorer()), sizes),
        SEGMENT: model_with(segment_attention(hidden, hidden), sizes),
        SYNTACTIC: model_with(softmax_attention(hidden, 2 * hidden), sizes, syntactic=True),
    }


def our_step(model: Seq2Seq, batch: Batch) -> Callable[[], Tensor]:
    """Return a call that computes loss and gradient like a training loop."""
    source_mask = torch.ones_like(batch.source, dtype=torch.bool)
    mask = torch.ones_like(batch.tokens, dtype=torch.bool)

    def step() -> Tensor:
        model.zero_grad(set_to_none=True)
        scored = model.score(batch.source, source_mask, batch.tokens, batch.targets, mask)
        loss = scored.loss.sum() / batch.tokens.numel()
        loss.backward()
        return loss

    return step


def bare_step(model: Bare, batch: Batch) -> Callable[[], Tensor]:
    """Return a call that computes loss and gradient of the bare engine."""

    def step() -> Tensor:
        model.zero_grad(set_to_none=True)
        loss = model.loss(batch)
        loss.backward()
        return loss

    return step


def steps(sizes: Sizes) -> dict[str, Callable[[], Tensor]]:
    """Return a call for every model, the bare engine first."""
    torch.manual_seed(0)
    batch = Batch.of(sizes)
    calls = {BARE: bare_step(Bare(sizes), batch)}
    return calls | {name: our_step(model, batch) for name, model in models(sizes).items()}


def in_half_precision(call: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """Return the same call with the matrix products of the forward pass in bfloat16."""

    def half() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return call()

    return half


def rows(sizes: Sizes, plan: Plan) -> Iterator[Row]:
    """Yield the ratios in float32 with targets, and in bfloat16."""
    calls = steps(sizes)
    timings = compare(calls, reference=BARE, plan=plan)
    yield from ratios(timings, f"training step ({sizes})", TARGETS)
    yield to_each_other(
        f"training step ({sizes}), segment attention to additive attention",
        timings[SEGMENT],
        timings[ADDITIVE],
        unit="x additive attention",
        target=SEGMENT_TARGET,
    )
    yield milliseconds(f"training step ({sizes}), bare engine", timings[BARE])
    halves = {name: in_half_precision(call) for name, call in calls.items()}
    timings = compare(halves | {"float32": calls[ADDITIVE]}, reference=BARE, plan=plan)
    whole = timings.pop("float32")
    yield from ratios(timings, f"training step in bfloat16 ({sizes})", {})
    yield to_each_other(
        f"training step ({sizes}), additive attention, float32 to bfloat16",
        whole,
        timings[ADDITIVE],
        unit="x bfloat16",
    )


def native_rows(sizes: Sizes, plan: Plan) -> Iterator[Row]:
    """Yield the ratios of structured attention with the C++ kernels to softmax attention."""
    calls = {
        name: call for name, call in steps(sizes).items() if name in (ADDITIVE, *NATIVE_TARGETS)
    }
    timings = compare(calls, reference=ADDITIVE, plan=plan)
    for name, target in NATIVE_TARGETS.items():
        yield to_each_other(
            f"training step with the C++ kernels ({sizes}), {name} to additive attention",
            timings[name],
            timings[ADDITIVE],
            unit="x additive attention",
            target=target,
        )


def ratios(timings: Mapping[str, Timing], what: str, targets: Mapping[str, float]) -> Iterator[Row]:
    """Yield the time of each model divided by the time of the bare engine."""
    for name, timing in timings.items():
        if name != BARE:
            yield Row(
                name=f"{what}, {name}",
                value=timing.ratio,
                unit="x bare engine",
                spread=timing.ratio_spread,
                target=targets.get(name),
                sense="<=" if name in targets else None,
            )


def to_each_other(
    name: str, one: Timing, other: Timing, *, unit: str, target: float | None = None
) -> Row:
    """Return the time of one candidate divided by another's, round by round."""
    each = [a / b for a, b in zip(one.seconds, other.seconds, strict=False)]
    return Row(
        name=name,
        value=median(each),
        unit=unit,
        spread=(min(each), max(each)),
        target=target,
        sense=None if target is None else "<=",
    )


def milliseconds(name: str, timing: Timing) -> Row:
    """Return the time of a call."""
    taken = [1e3 * seconds for seconds in timing.seconds]
    return Row(name=name, value=median(taken), unit="ms", spread=(min(taken), max(taken)))
