"""Trees over texts, and the recursive encoder against a recursion written by hand."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from foveal.data import Example
from foveal.data.vocabularies._vocabulary import BEGIN, END
from foveal.errors import SpecError
from foveal.inspection.explaining._erasure import change_without
from foveal.models import BracketedEncoderSpec, ClassifierSpec, RecursiveEncoderSpec, Seq2SeqSpec
from foveal.networks import RecursiveEncoder
from foveal.networks.encoders.trees._bracketing import CLOSE, OPEN, Bracketing, bracketing
from foveal.specs import with_setting
from foveal.tasks import ClassificationSpec
from tests.tasks.tiny import train

WORDS = {word: number for number, word in enumerate("abcdefgh", 4)}


def tokens_of(text: str) -> list[int]:
    return [{"(": OPEN, ")": CLOSE}.get(token) or WORDS[token] for token in text.split()]


def drawn(tree: Bracketing, tokens: list[int], node: int | None = None) -> str:
    """Write a tree with brackets."""
    node = tree.root if node is None else node
    assert node is not None
    if node < len(tokens):
        return "abcdefgh"[tokens[node] - 4]
    left, right = tree.merges[node - len(tokens)]
    return f"({drawn(tree, tokens, left)}{drawn(tree, tokens, right)})"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("( ( a b ) ( c d ) )", "((ab)(cd))"),
        ("( a ( b ( c d ) ) )", "(a(b(cd)))"),
        ("( a b c )", "((ab)c)"),  # more than two parts
        ("( ( a ) ( b ) )", "(ab)"),  # one part
        ("a ( b c )", "(a(bc))"),  # no bracket around all
        ("( a ( b c", "(a(bc))"),  # not closed
        ("a b ) c", "((ab)c)"),  # not opened
        ("( ) a b ( )", "(ab)"),  # empty
    ],
)
def test_brackets_are_a_tree(text: str, tree: str) -> None:
    tokens = tokens_of(text)
    assert drawn(bracketing(tokens, "brackets"), tokens) == tree


def test_a_text_without_words_has_no_root() -> None:
    assert bracketing(tokens_of("( ) )"), "brackets").root is None
    assert bracketing([], "balanced").root is None


@pytest.mark.parametrize("num_words", [1, 2, 3, 5, 8, 13, 100])
def test_a_balanced_tree_has_logarithmic_depth(num_words: int) -> None:
    def depth(kind: Any) -> int:
        heights = [0] * num_words
        for left, right in bracketing(range(4, 4 + num_words), kind).merges:
            heights.append(1 + max(heights[left], heights[right]))
        return max(heights)

    assert depth("balanced") == math.ceil(math.log2(num_words))
    assert depth("chain") == num_words - 1


def test_a_balanced_tree_and_a_chain() -> None:
    tokens = tokens_of("a b c d e")
    assert drawn(bracketing(tokens, "balanced"), tokens) == "(((ab)c)(de))"
    assert drawn(bracketing(tokens, "chain"), tokens) == "((((ab)c)d)e)"


def test_brackets_have_ids_that_no_word_has() -> None:
    assert (OPEN, CLOSE) == (BEGIN, END)


@pytest.mark.parametrize("composition", ["tanh", "tensor", "lstm"])
def test_the_states_equal_a_recursion(composition: Any) -> None:
    """( ( a b ) c ) and ( d ( e f ) ), written out with the formulas of the papers."""
    torch.manual_seed(0)
    encoder = RecursiveEncoder(
        nn.Embedding(12, 5), 4, composition=composition, tree="brackets"
    ).double()
    compose: Any = encoder.compose
    a, b, c, d, e, f = encoder.embedding(torch.tensor(tokens_of("a b c d e f"))).unbind()

    def leaf(x: Tensor) -> tuple[Tensor, Tensor]:
        if composition != "lstm":
            return torch.tanh(compose.word(x)), x
        i, o, u = compose.word(x).chunk(3)
        memory = i.sigmoid() * u.tanh()
        return o.sigmoid() * memory.tanh(), memory

    def join(left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        both = torch.cat([left[0], right[0]])
        if composition == "lstm":
            i, o, u, f_left, f_right = compose.parts(both).chunk(5)
            memory = (
                i.sigmoid() * u.tanh() + f_left.sigmoid() * left[1] + f_right.sigmoid() * right[1]
            )
            return o.sigmoid() * memory.tanh(), memory
        scores = compose.parts(both)
        if composition == "tensor":
            matrices = compose.tensor.weight.view(4, 8, 8)
            scores = scores + torch.stack([both @ v.mT @ both for v in matrices])
        return scores.tanh(), both

    texts = [tokens_of("( ( a b ) c )"), tokens_of("( d ( e f ) )")]
    memory = encoder(torch.tensor(texts))
    first, second = join(join(leaf(a), leaf(b)), leaf(c)), join(leaf(d), join(leaf(e), leaf(f)))
    assert memory.summary is not None
    assert_close(memory.summary, torch.stack([first[0], second[0]]))
    assert_close(memory.values[0, 4], join(leaf(a), leaf(b))[0])  # at the first closing bracket
    assert_close(memory.values[1, 1], leaf(d)[0])


def test_settings_choose_a_tree() -> None:
    spec = with_setting(Seq2SeqSpec(), "encoder", "recursive")
    assert with_setting(spec, "encoder.tree", "chain").encoder == RecursiveEncoderSpec(tree="chain")
    spec = with_setting(ClassifierSpec(), "encoder", "bracketed")
    assert spec.encoder == BracketedEncoderSpec()
    with pytest.raises(SpecError, match="bracketed"):  # other models have no trees in their texts
        with_setting(Seq2SeqSpec(), "encoder", "bracketed")


def test_a_classifier_reads_the_brackets() -> None:
    """The words of both classes are the same; only the brackets differ."""
    left, right = "( ( {} {} ) {} )", "( {} ( {} {} ) )"
    words = [("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b"), ("a", "c", "b")]
    examples = [
        Example(form.format(*three), label)
        for three in words
        for form, label in ((left, "left"), (right, "right"))
    ] * 5
    encoder = BracketedEncoderSpec(embedding_size=8, hidden_size=8, dropout=0.0)
    model = ClassifierSpec(encoder=encoder, pooling="summary", dropout=0.0)
    torch.manual_seed(0)
    task = ClassificationSpec(model=model, word_dropout=0.1).build_from(examples)
    train(task, examples, epochs=15, rate=3e-2, batch_size=20)
    task.model.eval()
    assert task.evaluate(examples[:8]).value == 100
    first, *others = task.predict(["( b ( a c ) )", "", "b"])
    assert first.output == "right"
    assert len(others) == 2
    assert change_without(task, examples[0], ["left"]) is None
