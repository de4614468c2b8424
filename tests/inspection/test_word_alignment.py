"""Links from attention: rules, words made of tokens, both directions."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from foveal.data import CharacterSpec, Example, SentencePieceSpec, TokenizerSpec, WhitespaceSpec
from foveal.errors import DataError, ValueRangeError
from foveal.inspection import align, forced_traces
from foveal.models import (
    AttentionSpec,
    DecoderSpec,
    LatentMonotoneSpec,
    SegmentSpec,
    Seq2SeqSpec,
    SigmoidSpec,
    SoftmaxSpec,
    TextEncoderSpec,
)
from foveal.tasks import ClassificationSpec, Transduction, TransductionSpec

EXAMPLES = [
    Example("ab c", "x yz"),
    Example("c a b", "yz"),
    Example("bb", "x x zy"),
]


def build(
    attention: AttentionSpec,
    source: TokenizerSpec,
    target: TokenizerSpec,
    examples: list[Example],
    *,
    outputs: str = "texts",
) -> Transduction:
    torch.manual_seed(1)
    spec = TransductionSpec(
        source=source,
        target=target,
        outputs="words" if outputs == "words" else "texts",
        model=Seq2SeqSpec(
            encoder=TextEncoderSpec(embedding_size=4, hidden_size=4),
            decoder=DecoderSpec(embedding_size=4, hidden_size=8, attention=attention),
        ),
    )
    task = spec.build_from(examples)
    for parameter in task.model.parameters():
        parameter.data.mul_(4)
    return task


def turned(examples: list[Example]) -> list[Example]:
    return [Example(example.target or "", example.text) for example in examples]


@pytest.fixture(scope="module")
def characters() -> Transduction:
    return build(SoftmaxSpec(), CharacterSpec(), CharacterSpec(), EXAMPLES)


def test_a_word_is_read_with_the_sum_over_its_symbols(characters: Transduction) -> None:
    """Computed by hand on `ab c` and `x yz`: tokens a b _ c and x _ y z."""
    (pair,) = align(characters, EXAMPLES[:1])
    rows = forced_traces(characters, EXAMPLES[:1])[0].weights
    assert pair.sources == ("ab", "c")
    assert pair.targets == ("x", "yz")
    first = [rows[0][0] + rows[0][1], rows[0][3]]
    of_y, of_z = ([rows[t][0] + rows[t][1], rows[t][3]] for t in (2, 3))
    assert pair.weights[0] == pytest.approx(first)
    assert pair.weights[1] == pytest.approx(np.maximum(of_y, of_z))


def test_where_places_are_taken_or_left_the_maximum_counts() -> None:
    task = build(SegmentSpec(), CharacterSpec(), WhitespaceSpec(), EXAMPLES)
    (pair,) = align(task, EXAMPLES[:1])
    rows = forced_traces(task, EXAMPLES[:1])[0].weights
    assert pair.weights[0] == pytest.approx((max(rows[0][:2]), rows[0][3]))


@pytest.mark.parametrize("attention", [SoftmaxSpec(), SigmoidSpec()], ids=lambda spec: spec.kind)
def test_a_higher_threshold_leaves_fewer_links(attention: AttentionSpec) -> None:
    task = build(attention, CharacterSpec(), WhitespaceSpec(), EXAMPLES)
    found = [align(task, EXAMPLES, threshold=t) for t in (0.1, 0.3, 0.5, 0.9, 1.0)]
    for lower, higher in pairwise(found):
        for more, fewer in zip(lower, higher, strict=True):
            assert fewer.links <= more.links
    for pair in found[1]:
        assert pair.links == {
            (i, j) for j, row in enumerate(pair.weights) for i, p in enumerate(row) if p >= 0.3
        }
        assert pair.pharaoh.split() == [f"{i}-{j}" for i, j in sorted(pair.links)]


def test_argmax_links_every_word_of_the_target() -> None:
    task = build(SoftmaxSpec(), WhitespaceSpec(), WhitespaceSpec(), EXAMPLES)
    for pair in align(task, EXAMPLES, by="argmax"):
        assert [j for _, j in sorted(pair.links, key=lambda link: link[1])] == list(
            range(len(pair.targets))
        )
        for i, j in pair.links:
            assert pair.weights[j][i] == max(pair.weights[j])


def test_argmax_of_monotone_attention_is_one_path() -> None:
    task = build(LatentMonotoneSpec(), WhitespaceSpec(), WhitespaceSpec(), EXAMPLES)
    for pair in align(task, EXAMPLES, by="argmax"):
        places = [i for i, _ in sorted(pair.links, key=lambda link: link[1])]
        assert places == sorted(places)


def test_units_are_words_of_texts_and_symbols_of_words(characters: Transduction) -> None:
    assert align(characters, EXAMPLES[:1])[0].sources == ("ab", "c")
    assert align(characters, EXAMPLES[:1], units="symbols")[0].sources == ("a", "b", " ", "c")
    words = build(SoftmaxSpec(), CharacterSpec(), CharacterSpec(), EXAMPLES, outputs="words")
    assert align(words, EXAMPLES[:1])[0].targets == ("x", " ", "y", "z")


def test_subwords_become_words() -> None:
    texts = ["the house is small", "a small house", "the small houses"] * 30
    examples = [Example(text, text) for text in texts]
    pieces = SentencePieceSpec(num_pieces=300)
    task = build(SoftmaxSpec(), pieces, pieces, examples)
    (pair,) = align(task, [Example("the houses", "the smallest house")])
    assert pair.sources == ("the", "houses")
    assert pair.targets == ("the", "smallest", "house")


def test_both_directions_obey_the_laws_of_symmetrization(characters: Transduction) -> None:
    back = build(SoftmaxSpec(), CharacterSpec(), CharacterSpec(), turned(EXAMPLES))
    there = align(characters, EXAMPLES, threshold=0.3)
    here = align(back, turned(EXAMPLES), threshold=0.3)
    found = {
        method: align(characters, EXAMPLES, threshold=0.3, reverse=back, symmetrization=method)
        for method in ("intersection", "grow-diag-final", "union", "product")
    }
    for n, (a, b) in enumerate(zip(there, here, strict=True)):
        ours, theirs = a.links, {(i, j) for j, i in b.links}
        assert found["intersection"][n].links == ours & theirs
        assert found["union"][n].links == ours | theirs
        assert found["intersection"][n].links <= found["grow-diag-final"][n].links
        assert found["grow-diag-final"][n].links <= found["union"][n].links
        assert found["intersection"][n].links <= found["product"][n].links
        mean = np.sqrt(np.array(a.weights) * np.array(b.weights).T)
        assert np.array(found["product"][n].weights) == pytest.approx(mean)


def test_empty_texts_have_no_links(characters: Transduction) -> None:
    for example in (Example("", "x"), Example("ab", ""), Example("", "")):
        (pair,) = align(characters, [example], threshold=0.01)
        assert pair.links == frozenset()
        assert len(pair.weights) == len(pair.targets)


def test_alignments_that_examples_have_are_not_looked_at(characters: Transduction) -> None:
    taught = replace(EXAMPLES[0], alignment="99-99")
    assert align(characters, [taught]) == align(characters, EXAMPLES[:1])


def test_what_is_wrong_is_said(characters: Transduction) -> None:
    with pytest.raises(ValueRangeError, match="threshold"):
        align(characters, EXAMPLES, threshold=0.0)
    with pytest.raises(ValueRangeError, match="product needs posterior"):
        align(characters, EXAMPLES, by="argmax", reverse=characters, symmetrization="product")
    with pytest.raises(DataError):
        align(characters, [Example("a")])
    labels = ClassificationSpec().build_from([Example("a b", "x"), Example("b", "y")])
    with pytest.raises(ValueRangeError, match="classification"):
        align(labels, EXAMPLES)


def test_directions_with_other_symbols_are_aligned_by_words(characters: Transduction) -> None:
    back = build(SoftmaxSpec(), WhitespaceSpec(), WhitespaceSpec(), turned(EXAMPLES))
    assert len(align(characters, EXAMPLES, reverse=back)) == len(EXAMPLES)
    with pytest.raises(ValueRangeError, match="units words"):
        align(characters, EXAMPLES, units="symbols", reverse=back)
