"""Write formulas in infix notation, given prefix notation: trees in, trees out (Kim et al. 2017).

    ( * ( + 15 7 1 ) ( + 19 0 ) )   becomes   ( 15 + 7 + 1 ) * ( 19 + 0 )

The input has an operator once, before its arguments; the output has it between all arguments, which may be
long. With attention, the decoder reads the formula again for every output token; without attention, it knows
only its initial state. Both models have the same sizes, training steps, formulas, and a beam of 5.

The example generates its data as in section 4.1 of the paper: 5,000 formulas of each depth from 2 to 4 for training,
and 200 of each depth from 2 to 6 for the test. Depths 5 and 6 do not occur in training. The encoder of the
paper is embeddings with self-attention. Here it is a BiLSTM, because a decoder without attention would
otherwise know nothing about the order of the tokens.

Run: python examples/prefix_to_infix.py [--updates 1500] [--seed 0]
"""

from random import Random

from support.formulas import SYMBOLS, draw_examples
from support.transduction import parse_budget, train

from foveal.data import BEGIN, END, BatchStream, Encoded, Example, InMemory, collate_seq2seq
from foveal.decoding import beam_search
from foveal.models import (
    BilinearSpec,
    DecoderSpec,
    Seq2Seq,
    Seq2SeqSpec,
    SoftmaxSpec,
    TextEncoderSpec,
)

READERS = {"attention": SoftmaxSpec(scorer=BilinearSpec()), "no attention": None}


def build(attention: SoftmaxSpec | None) -> Seq2Seq:
    """Return a model with a bidirectional encoder."""
    return Seq2SeqSpec(
        encoder=TextEncoderSpec(embedding_size=32, hidden_size=64, dropout=0.0),
        decoder=DecoderSpec(embedding_size=32, hidden_size=128, dropout=0.0, attention=attention),
    ).build(source_vocabulary=len(SYMBOLS), target_vocabulary=len(SYMBOLS))


def encode(formula: Example) -> Encoded:
    """Encode both notations as token ids."""
    prefix, infix = formula.text.split(), (formula.target or "").split()
    return Encoded(SYMBOLS.encode(prefix), SYMBOLS.encode(infix))


def share_right(model: Seq2Seq, formulas: tuple[Example, ...]) -> float:
    """Return the percentage of correct outputs."""
    batch = collate_seq2seq([encode(formula) for formula in formulas])
    state, most = model.start(batch.source, batch.source_mask), batch.targets.shape[1]
    found = beam_search(model.stepper(), state, begin=BEGIN, end=END, max_length=most, beam_size=5)
    written = [" ".join(SYMBOLS.decode(best)) for (best,) in found.token_lists(END)]
    right = [text == formula.target for text, formula in zip(written, formulas, strict=True)]
    return 100 * sum(right) / len(right)


def main() -> None:
    """Train and test both models."""
    budget, total = parse_budget(updates=1500), dict.fromkeys(READERS, 0.0)
    known = draw_examples(range(2, 5), 5000, Random(budget.seed))
    for name, attention in READERS.items():
        source = InMemory(known)
        stream = BatchStream(source, encode, collate_seq2seq, batch_size=64, seed=budget.seed)
        model = train(build(attention), stream.forever(), budget.updates, learning_rate=4e-3)
        for depth in range(2, 7):
            unseen = draw_examples([depth], 200, Random(1000 + depth), unlike=known)
            right = share_right(model, unseen)
            print(f"formulas of depth {depth} with {name}: {right:.1f} %")
            total[name] += right
    assert total["attention"] > total["no attention"], "reading again should help"


if __name__ == "__main__":
    main()
