"""Where a model looks while it is made to write a given target (teacher forcing).

    weights[t][s] = p(step t reads place s),   step t predicts target symbol t from the t before it

so that row t belongs to the symbol that the step writes, not to the one it has just read. A softmax
decoder looks before it knows that symbol: p(a_t = s | y_<t). Where the attention is summed out
(`latent_hard`, `monotone`) the rows are the posterior p(a_t = s | y), the target known.

`best` is the most probable selection: the segments of each step, the path of all steps together of
`monotone`, the places above one half of sigmoid, the place of highest weight of all others. Of several
heads the weights are means; their best is the place of highest mean weight or, for segments and
sigmoid, the places that more than half of the heads select.

Axes: B examples, H heads, T steps, S places.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import one_hot

from ...attention import Attended, AttentionTrace
from ...data import Example
from ...data._batches import move
from ...distributions import LinearChain, Subset
from ...errors import ValueRangeError
from ...models import AttentionSpec
from ...networks.decoders.latent._posterior import Posterior
from ...tasks import Transduction

_AT_ONCE = 256  # examples
_MOST_PLACES = 50_000  # source and target symbols of a batch, padding too


def forced_traces(task: Transduction, examples: Sequence[Example]) -> list[AttentionTrace]:
    """What the decoder reads for each symbol of each target, and last, labeled "", for its end.

    Places are the source symbols; what is read of features is left out.
    """
    attention = task.spec.model.decoder.attention
    if attention is None:
        raise ValueRangeError(
            "forced_traces: the decoder has no attention, so it looks nowhere. "
            "Train a model with decoder.attention softmax, say."
        )
    # Alignments that an example may have are for training.
    examples = [replace(example, alignment="") for example in examples]
    found: dict[int, AttentionTrace] = {}
    with task.answering():
        for rows in _batches(examples):
            some = [examples[n] for n in rows]
            found.update(zip(rows, _traces(task, attention, some), strict=True))
    return [found[n] for n in range(len(examples))]


def _batches(examples: Sequence[Example]) -> Iterator[list[int]]:
    """Examples of about one length, the longest first."""
    lengths = [len(example.text) + len(example.target or "") for example in examples]
    order = sorted(range(len(examples)), key=lambda n: -lengths[n])
    start = 0
    while start < len(order):
        size = max(1, min(_AT_ONCE, _MOST_PLACES // max(1, lengths[order[start]])))
        yield order[start : start + size]
        start += size


def _traces(
    task: Transduction, attention: AttentionSpec, examples: Sequence[Example]
) -> Iterator[AttentionTrace]:
    """The traces of one batch."""
    batch = move(task.collate([task.encode(example) for example in examples]), task.device)
    scored = task.model.score(*task.source_of(batch), batch.tokens, batch.targets, batch.mask)
    readings = [_reading(reading) for reading in scored.attended]
    weights, best = (torch.cat(parts, -2) for parts in zip(*readings, strict=True))
    if attention.has_heads:
        weights, best = _joined(weights, best)
    num_places = batch.source.shape[1]
    for number, example in enumerate(examples):
        sources = task.symbols(example) or [""]
        targets = (*task.spec.target.encode(example.target or ""), "")
        # Features stand before the source.
        some = slice(len(targets)), slice(-num_places, len(sources) - num_places or None)
        yield AttentionTrace(
            kind=attention.kind,
            sources=tuple(sources),
            targets=targets,
            weights=tuple(map(tuple, weights[number][some].tolist())),
            best=tuple(map(tuple, best[number][some].tolist())),
        )


def _reading(
    reading: object,
) -> tuple[Float[Tensor, "... T S"], Bool[Tensor, "... T S"]]:
    """p(place is read) of every step, and the most probable selection."""
    if isinstance(reading, Posterior):
        weights = reading.weights
        if not isinstance(reading.distribution, LinearChain):
            return weights, _highest(weights)
        places = reading.distribution.argmax()  # -1 on padding
        return weights, one_hot(places.clamp(min=0), weights.shape[-1]).bool()
    assert isinstance(reading, Attended)
    distribution = reading.distribution
    if isinstance(distribution, LinearChain):
        return distribution.marginals()[..., 1], distribution.argmax() == 1
    weights = distribution.marginals()
    return weights, weights > 0.5 if isinstance(distribution, Subset) else _highest(weights)


def _highest(weights: Float[Tensor, "... T S"]) -> Bool[Tensor, "... T S"]:
    return one_hot(weights.argmax(-1), weights.shape[-1]).bool()


def _joined(
    weights: Float[Tensor, "B H T S"], best: Bool[Tensor, "B H T S"]
) -> tuple[Float[Tensor, "B T S"], Bool[Tensor, "B T S"]]:
    """Several heads as one."""
    exclusive = bool((best.sum(-1) == 1).all())
    mean = weights.mean(-3)
    return mean, _highest(mean) if exclusive else best.float().mean(-3) > 0.5
