"""Copy and reverse token sequences, with and without attention: which model generalizes to long sequences?

    without attention   the decoder knows the input only through its initial state
    with attention      for each output token, it also reads sum over s of weights[s] values[s]

Both models have the same encoder and decoder, and the same training steps on the same random sequences. They
are trained on 2 to 20 tokens and tested on 5 to 40 tokens; lengths above 20 do not occur in training. An
output is correct if all its tokens and its length are correct.

References: Sutskever et al. 2014; Bahdanau et al. 2015, section 5.2.2.

Run: python examples/copy_and_reverse.py [--updates 1500] [--seed 0]
"""

from collections.abc import Iterator

import torch
from support.transduction import parse_budget, train
from torch import Generator

from foveal.data import BEGIN, END, Encoded, Seq2SeqBatch, collate_seq2seq
from foveal.decoding import greedy
from foveal.models import DecoderSpec, Seq2Seq, Seq2SeqSpec, SoftmaxSpec, TextEncoderSpec

SYMBOLS = range(4, 24)  # 0 to 3 are padding, unknown, begin and end
LONGEST = 20  # maximum length of training sequences
READERS = {"attention": SoftmaxSpec(), "no attention": None}


def build(attention: SoftmaxSpec | None) -> Seq2Seq:
    """Return a model with a bidirectional encoder."""
    return Seq2SeqSpec(
        encoder=TextEncoderSpec(embedding_size=32, hidden_size=64, dropout=0.0),
        decoder=DecoderSpec(embedding_size=32, hidden_size=128, dropout=0.0, attention=attention),
    ).build(source_vocabulary=SYMBOLS.stop, target_vocabulary=SYMBOLS.stop)


def draw(task: str, length: int, number: int, chance: Generator) -> Seq2SeqBatch:
    """Draw `number` sequences of `length` tokens, with their targets."""
    size = (number, length)
    rows = torch.randint(SYMBOLS.start, SYMBOLS.stop, size, generator=chance).tolist()
    return collate_seq2seq([Encoded(row, row if task == "copy" else row[::-1]) for row in rows])


def lessons(task: str, chance: Generator) -> Iterator[Seq2SeqBatch]:
    """Yield batches forever, each of one length."""
    while True:
        length = int(torch.randint(2, LONGEST + 1, (), generator=chance))
        yield draw(task, length, 64, chance)


def share_right(model: Seq2Seq, batch: Seq2SeqBatch) -> float:
    """Return the percentage of correct outputs."""
    state, most = model.start(batch.source, batch.source_mask), batch.targets.shape[1]
    found = greedy(model.stepper(), state, begin=BEGIN, end=END, max_length=most)
    pairs = zip(found.token_lists(END), batch.targets[:, :-1].tolist(), strict=True)
    return 100 * sum(written == [target] for written, target in pairs) / len(batch.targets)


def main() -> None:
    """Train and test both models on both tasks."""
    budget, total = parse_budget(updates=1500), dict.fromkeys(READERS, 0.0)
    for task in ("copy", "reverse"):
        for name, attention in READERS.items():
            batches = lessons(task, Generator().manual_seed(budget.seed))
            model = train(build(attention), batches, budget.updates, learning_rate=4e-3)
            for length in range(5, 2 * LONGEST + 1, 5):
                tests = draw(task, length, 500, Generator().manual_seed(1000 + length))
                right = share_right(model, tests)
                print(f"{task} with {name}, length {length}: {right:.1f} %")
                total[name] += right
    assert total["attention"] > total["no attention"], "attention should hold for longer"


if __name__ == "__main__":
    main()
