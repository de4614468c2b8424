"""Attention of a model under teacher forcing, with a given target.

    weights[t][s] = p(step t reads position s),   step t predicts target token t from the t tokens before it

Row t therefore belongs to the token that the step predicts, not to the token it has just read. A softmax
decoder attends before it knows that token: p(a_t = s | y_<t). Where the attention is marginalized
(`latent_hard`, `monotone`) the rows are the posterior p(a_t = s | y), given the target.

`best` is the most probable selection: the segments of each step, the joint path over all steps for
`monotone`, the positions above one half for sigmoid, and the position of highest weight for all other kinds.
For several heads, the weights are means; the best selection is the position of highest mean weight or, for
segments and sigmoid, the positions that more than half of the heads select.

Axes: B examples, H heads, T steps, S positions.
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
from ...networks.decoders.transformer._cross_attention import CrossReading
from ...tasks import Transduction

_AT_ONCE = 256  # examples
_MOST_PLACES = 50_000  # source and target tokens of a batch, with padding


def forced_traces(task: Transduction, examples: Sequence[Example]) -> list[AttentionTrace]:
    """Trace the attention of the decoder for each target token and, in a last row labeled "", for the end token.

    Positions are the source tokens; attention to features is left out.

    Args:
        task: A trained transduction whose decoder has attention.
        examples: Examples with targets.

    Returns:
        A trace for each example.

    Raises:
        ValueRangeError: The decoder has no attention, or the model reads documents.
    """
    attention = task.spec.model.decoder.attention
    if attention is None:
        raise ValueRangeError(
            "forced_traces: expected a decoder with attention, got one without. Train a model with "
            "attention, for example decoder.attention=softmax."
        )
    if task.spec.model.reads_documents:
        raise ValueRangeError(
            "forced_traces: expected a model that reads each source as one text, got a model of documents. Use explain "
            "for the attention to the words and sentences of a document."
        )
    # Gold alignments of an example are for training only.
    examples = [replace(example, alignment="") for example in examples]
    found: dict[int, AttentionTrace] = {}
    with task.answering():
        for rows in _batches(examples):
            some = [examples[n] for n in rows]
            found.update(zip(rows, _traces(task, attention, some), strict=True))
    return [found[n] for n in range(len(examples))]


def _batches(examples: Sequence[Example]) -> Iterator[list[int]]:
    """Group examples of similar length into batches, longest first."""
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
    """Return the traces of one batch."""
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
        # Features come before the source tokens.
        some = slice(len(targets)), slice(-num_places, len(sources) - num_places or None)
        yield AttentionTrace(
            kind=task.attention or attention.kind,
            sources=tuple(sources),
            targets=targets,
            weights=tuple(map(tuple, weights[number][some].tolist())),
            best=tuple(map(tuple, best[number][some].tolist())),
        )


def _reading(
    reading: object,
) -> tuple[Float[Tensor, "... T S"], Bool[Tensor, "... T S"]]:
    """Return p(position is read) for every step, and the most probable selection."""
    if isinstance(reading, Posterior):
        weights = reading.weights
        if not isinstance(reading.distribution, LinearChain):
            return weights, _highest(weights)
        places = reading.distribution.argmax()  # -1 on padding
        return weights, one_hot(places.clamp(min=0), weights.shape[-1]).bool()
    if isinstance(reading, CrossReading):
        heads = zip(*(_reading(each) for each in reading.heads), strict=True)
        weights, best = (torch.cat(parts, -3) for parts in heads)
        return _joined(weights, best)
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
    """Merge several heads into one."""
    exclusive = bool((best.sum(-1) == 1).all())
    mean = weights.mean(-3)
    return mean, _highest(mean) if exclusive else best.float().mean(-3) > 0.5
