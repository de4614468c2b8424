"""Japanese to English with four kinds of attention and one budget (Kim et al. 2017, section 4.2).

    foveal fit --recipe recipes/segment_translation.py --out runs/segments      segments of characters
    foveal fit --recipe recipes/segment_translation.py:words_simple --out runs/words        and others
    python -m benchmarks.lectures fit segment_translation --runs runs              all cases, three seeds
    python -m benchmarks.lectures score segment_translation --runs runs

    none       an encoder-decoder: the whole sentence in one vector
    simple     each English word reads one position, by a softmax
    sigmoid    each position is read or not, independently
    segment    segments of positions are read: a chain of "skip" and "read", scaled to 2 as in the paper

The source is split into `characters`, or into the `words` of the corpus. All eight cases have the same sizes, updates
and other settings. They read the data of `recipes/ja_en.py`.
"""

from dataclasses import replace
from functools import partial

from foveal.models import (
    AttentionSpec,
    DecoderSpec,
    SegmentSpec,
    Seq2SeqSpec,
    SigmoidSpec,
    SoftmaxSpec,
    TextEncoderSpec,
)
from foveal.tasks import TransductionSpec
from foveal.training import Run
from recipes import ja_en

ATTENTIONS: dict[str, AttentionSpec | None] = {
    "none": None,
    "simple": SoftmaxSpec(),
    "sigmoid": SigmoidSpec(),
    "segment": SegmentSpec(total=2.0),
}
CASES = tuple(f"{source}_{attention}" for source in ja_en.SOURCES for attention in ATTENTIONS)
SIZE = 128  # width of words, characters and states: half of the record's width, in half of its time


def recipe(case: str = "characters_segment") -> Run:
    """Return a run with a bidirectional LSTM, one kind of attention and an LSTM: about ten minutes."""
    source, _, attention = case.partition("_")
    run = ja_en.recipe(source)
    assert isinstance(run.task, TransductionSpec)
    encoder = TextEncoderSpec(embedding_size=SIZE, hidden_size=SIZE, dropout=0.2)
    decoder = DecoderSpec(
        embedding_size=SIZE, hidden_size=SIZE, dropout=0.2, attention=ATTENTIONS[attention]
    )
    # With half the batch size, an epoch takes the same time and has more steps to learn the alignment.
    return replace(
        run,
        task=replace(run.task, model=Seq2SeqSpec(encoder=encoder, decoder=decoder)),
        training=replace(run.training, epochs=6.0, batch_tokens=1000, bf16=False),
    )


# fmt: off
(characters_none, characters_simple, characters_sigmoid, characters_segment,
 words_none, words_simple, words_sigmoid, words_segment) = (partial(recipe, case) for case in CASES)
# fmt: on
