"""Recommend copying for inflection: a form repeats the letters of its lemma, and features choose its endings.

A model without copying must learn every letter, and cannot write a letter that training does not have, such as a new
kanji. `recipes/inflection.py` has the measured settings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..data import Example
from ..models import DecoderSpec, SoftmaxSpec
from ..tasks._transduction import TransductionSpec
from ._shared_tokens import repeats_its_source

# A lemma has 10 to 25 forms in such files, and a letter occurs in lemma and form: rarer letters are letters of two
# lemmas, or of one.
_FORMS_PER_RARE_LETTER = 200
_MOST = 50  # the measured value, for 10,000 forms


def with_copied_letters(
    spec: TransductionSpec, examples: Sequence[Example], num_examples: int
) -> tuple[TransductionSpec, Mapping[str, str]]:
    """Turn on copying in the spec of a task with features whose forms repeat the letters of their lemma.

    Args:
        spec: The recommended task.
        examples: Some examples.
        num_examples: The number of all training examples.

    Returns:
        The spec, and the reason for each changed setting by its path. Without features, with an attention that cannot
        copy, or with other targets, the spec is unchanged and there are no reasons.
    """
    decoder = spec.model.decoder
    if (
        spec.features is None
        or spec.outputs != "words"
        or not isinstance(decoder, DecoderSpec)
        or not isinstance(decoder.attention, SoftmaxSpec)
        or not repeats_its_source(spec.source, spec.target, examples)
    ):
        return spec, {}
    copying = replace(decoder, copy=True, bridge="both")
    changed = replace(
        spec,
        model=replace(spec.model, decoder=copying),
        min_count=min(_MOST, max(1, num_examples // _FORMS_PER_RARE_LETTER)),
        label_smoothing=0.0,
    )
    return changed, {
        "model.decoder.copy": "forms repeat the letters of their lemma: the decoder copies them, also letters that the "
        "training set does not have",
        "model.decoder.bridge": "features choose the endings: the decoder reads a summary of lemma and features at "
        "every step",
        "min_count": "the letters of only a few lemmas become unknown tokens, from which the decoder learns to copy "
        "new letters",
        "label_smoothing": "with copying, training without label smoothing is faster",
    }
