"""Recommend a model for dialogs: each response is generated from the turns before it.

The model reads the words of each turn, then the turns, and attends to both (hierarchical recurrent encoder-decoder).
"""

from collections.abc import Iterable
from dataclasses import replace

from ..data import Example
from ..models import (
    DecoderSpec,
    DocumentEncoderSpec,
    HierarchicalSpec,
    RecurrentSpec,
    TextEncoderSpec,
)
from ..tasks._transduction import TransductionSpec
from ._recommending import Reason, Recommendation, recommend


def recommend_dialogs(examples: Iterable[Example]) -> Recommendation:
    """Recommend a spec for dialogs, which are read more than once.

    Args:
        examples: Training examples, whose sources are dialogs.

    Returns:
        The recommendation for other texts, with an encoder of two levels and attention to both.
    """
    found = recommend(examples)
    if not isinstance(found.task, TransductionSpec):
        return found
    model = found.task.model
    assert isinstance(model.encoder, TextEncoderSpec)
    assert isinstance(model.decoder, DecoderSpec)
    size = model.encoder.hidden_size
    turns = RecurrentSpec(hidden_size=size, bidirectional=False, dropout=model.encoder.dropout)
    levels = replace(
        model,
        encoder=DocumentEncoderSpec(words=model.encoder, pooling=None, sentences=turns),
        decoder=replace(model.decoder, attention=HierarchicalSpec()),
    )
    moved = {
        f"model.encoder.{name}": f"model.encoder.words.{name}"
        for name in ("embedding_size", "hidden_size", "dropout")
    }
    reasons = [
        reason._replace(path=moved.get(reason.path, reason.path)) for reason in found.reasons
    ]
    reasons += [
        Reason("model.encoder", "a dialog: the model reads the words of each turn, then the turns"),
        Reason(
            "model.decoder.attention",
            "a dialog: each step attends to the turns and to the words of each turn",
        ),
    ]
    return found._replace(task=replace(found.task, model=levels), reasons=tuple(reasons))
