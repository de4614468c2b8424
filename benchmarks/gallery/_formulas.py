"""Formulas from prefix to infix notation, with syntactic attention in the encoder (Kim et al. 2017,
section 4.1).

A token is represented by its embedding and the expected embedding of its head; a BiLSTM scores the heads.
Training has no trees: the model induces them from the transduction task. The gallery shows the example of
the paper, which is held out of training.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from examples.support.formulas import SYMBOLS, draw_examples
from examples.support.transduction import train
from foveal.attention import Attended, AttentionTrace
from foveal.data import (
    BEGIN,
    END,
    BatchStream,
    Encoded,
    Example,
    InMemory,
    Seq2SeqBatch,
    collate_seq2seq,
)
from foveal.decoding import beam_search
from foveal.models import (
    BilinearSpec,
    DecoderSpec,
    RecurrentSpec,
    Seq2Seq,
    Seq2SeqSpec,
    SoftmaxSpec,
    SyntacticSpec,
    WordEncoderSpec,
)
from foveal.networks import SelfAttentiveEncoder
from foveal.specs import to_data

from ..results import Results
from ._exhibit import Budget, Exhibit, Shown, Stopwatch, rounded, share_row

SHOWN = Example("( * ( + 15 7 1 ) ( + 19 0 ) )", "( 15 + 7 + 1 ) * ( 19 + 0 )")
DEPTHS, NUMBER, NUM_TESTED = (2, 3), 5000, 200
UPDATES, RATE = 1500, 4e-3


def spec() -> Seq2SeqSpec:
    """Return an encoder of words and their heads with an ordinary decoder."""
    return Seq2SeqSpec(
        encoder=WordEncoderSpec(
            embedding_size=48,
            dropout=0.0,
            self_attention=SyntacticSpec(hidden_size=64),
            states=RecurrentSpec(hidden_size=48, bidirectional=True, dropout=0.0),
        ),
        decoder=DecoderSpec(
            embedding_size=32,
            hidden_size=128,
            dropout=0.0,
            attention=SoftmaxSpec(scorer=BilinearSpec()),
        ),
    )


def formulas(budget: Budget) -> Exhibit:
    """Train, test, and record the heads of one formula."""
    watch = Stopwatch()
    torch.manual_seed(budget.seed)
    known = draw_examples(DEPTHS, NUMBER, Random(budget.seed), unlike=[SHOWN])
    unseen = draw_examples(DEPTHS, NUM_TESTED, Random(1000 + budget.seed), unlike=[*known, SHOWN])
    stream = BatchStream(InMemory(known), encode, collate_seq2seq, batch_size=64, seed=budget.seed)
    model = spec().build(source_vocabulary=len(SYMBOLS), target_vocabulary=len(SYMBOLS))
    untrained = own_operator(model.eval(), unseen)
    train(model.train(), stream.forever(), budget.steps(UPDATES), learning_rate=RATE)
    written = write(model, unseen)
    right = [text == formula.target for text, formula in zip(written, unseen, strict=True)]
    rows = [
        share_row("unseen formulas without a mistake", right, budget.seed),
        share_row("numbers headed by their operator", own_operator(model, unseen), budget.seed),
        share_row("numbers headed by it before training", untrained, budget.seed),
        watch.row(budget.seed),
    ]
    drawn = {"depths": DEPTHS, "formulas of each": NUMBER, "batch": 64, "learning rate": RATE}
    results = Results.here("python -m benchmarks.gallery --cases formulas").with_rows(rows)
    return Exhibit(
        results=replace(
            results,
            spec={"model": to_data(spec()), "training": drawn | {"updates": budget.steps(UPDATES)}},
        ),
        shown=Shown(
            facts={
                "input": SHOWN.source,
                "output": write(model, [SHOWN])[0],
                "reference": SHOWN.target,
            },
            trace=_trace(model),
        ),
    )


def encode(formula: Example) -> Encoded:
    """Encode both notations as token ids."""
    return Encoded(
        SYMBOLS.encode(formula.text.split()), SYMBOLS.encode((formula.target or "").split())
    )


def write(model: Seq2Seq, examples: Sequence[Example]) -> list[str]:
    """Return the outputs of the model for these formulas."""
    batch = collate_seq2seq([encode(formula) for formula in examples])
    state, most = model.start(batch.source, batch.source_mask), batch.targets.shape[1]
    found = beam_search(model.stepper(), state, begin=BEGIN, end=END, max_length=most, beam_size=5)
    return [" ".join(SYMBOLS.decode(best)) for (best,) in found.token_lists(END)]


def operators(symbols: Sequence[str]) -> dict[int, int]:
    """Map each number of a formula in prefix notation to the position of its operator."""
    found, inside = dict[int, int](), list[int]()
    for place, symbol in enumerate(symbols):
        if symbol == "(":
            inside.append(place + 1)
        elif symbol == ")":
            inside.pop()
        elif symbol not in "+*":
            found[place] = inside[-1]
    return found


def own_operator(model: Seq2Seq, examples: Sequence[Example]) -> list[bool]:
    """Return for each number whether its head in the most probable tree is its operator."""
    batch = collate_seq2seq([encode(formula) for formula in examples])
    heads = _heads(_attend(model, batch)).tolist()
    return [
        row[number] - 1 == operator
        for formula, row in zip(examples, heads, strict=True)
        for number, operator in operators(formula.text.split()).items()
    ]


def _attend(model: Seq2Seq, batch: Seq2SeqBatch) -> Attended:
    encoder = model.encoder
    assert isinstance(encoder, SelfAttentiveEncoder)
    with torch.no_grad():
        return encoder.attend(batch.source, batch.source_mask)


def _heads(attended: Attended) -> Tensor:
    """Return the heads (B, S) of the most probable trees: 0 for the root, or the head's position plus 1."""
    return attended.distribution.argmax()


def _trace(model: Seq2Seq) -> AttentionTrace:
    symbols = tuple(SHOWN.text.split())
    read = _attend(model, collate_seq2seq([encode(SHOWN)]))
    best = one_hot(_heads(read)[0], len(symbols) + 1)[:, 1:].bool()
    return AttentionTrace(
        kind="syntactic",
        sources=symbols,
        targets=symbols,
        weights=rounded(read.weights[0]),
        best=tuple(map(tuple, best.tolist())),
    )
