"""Parses: syntactic attention that learns from given trees (Dozat and Manning 2017; Koo et al. 2007).

    loss = -log p(gold tree)        under the distribution that the attention reads heads by

Universal Dependencies, English Web Treebank, sentences of at most 15 words to learn from, words and
their spelling only. What is shown is the first sentence of the test file that has 8 to 11 words, the
last of which is a full stop.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from examples.support import DATA, Batch, BiLSTM, Corpus, Sentence, Token, fit, spelling
from foveal.attention import Attended, AttentionTrace, Memory, syntactic_attention

from ..results import Results, digest
from ._exhibit import Budget, Exhibit, Shown, Stopwatch, rounded, share_row

FILES = tuple(f"ud_english_ewt/en_ewt-ud-{part}.conllu.gz" for part in ("train", "test"))
LONGEST = 15  # words of a sentence to learn from
SHOWN, STOP = range(8, 12), "word ."  # how many words, and the last of them
SIZE, EPOCHS, RATE = 96, 4, 3e-3


class Parser(nn.Module):
    """Every word reads its head: attention of a sentence to itself."""

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(num_features, 64)
        self.lstm = BiLSTM(4 * 64, SIZE, num_layers=1, dropout=0.2)
        # Arcs may cross, as in the treebank.
        self.attention = syntactic_attention(2 * SIZE, 2 * SIZE, 2 * SIZE, projective=False)

    def forward(self, batch: Batch) -> Attended:
        """What every word reads of the others."""
        states = self.lstm(self.embed(batch.features).flatten(-2), batch.lengths)
        return self.attention(states, self.attention.remember(Memory(states, batch.mask)))

    def loss(self, batch: Batch) -> Tensor:
        """-log p of the given trees (B,)."""
        return -self(batch).distribution.log_prob(batch.labels.clamp(min=0))


def token(line: str) -> Token | None:
    """A word and its head; None for comments, and for tokens that are split into words."""
    columns = line.split("\t")
    return (spelling(columns[1]), int(columns[6])) if columns[0].isdigit() else None


def parses(budget: Budget) -> Exhibit:
    """Train, test, and draw one sentence."""
    watch = Stopwatch()
    torch.manual_seed(budget.seed)
    train, test = FILES
    corpus = Corpus.read(train, test, token, cut=None if budget.updates is None else 40)
    corpus = replace(corpus, train=[each for each in corpus.train if len(each) <= LONGEST])
    parser = Parser(corpus.num_features)
    epochs = EPOCHS if budget.updates is None else 1
    fit(parser, parser.loss, corpus, epochs=epochs, learning_rate=RATE)
    right = list[bool]()
    with torch.no_grad():
        for batch in corpus.batches("test"):
            right += (_heads(parser, batch) == batch.labels)[batch.mask].tolist()
    chosen = next(each for each in corpus.test if len(each) in SHOWN and each[-1][0][0] == STOP)
    results = Results.here("python -m benchmarks.gallery --cases parses")
    rows = [share_row("test words with the right head", right, budget.seed), watch.row(budget.seed)]
    training = {"epochs": epochs, "learning rate": RATE, "sentences": len(corpus.train)}
    return Exhibit(
        results=replace(
            results.with_rows(rows),
            data={path: digest(DATA / path) for path in FILES},
            spec={"model": {"kind": "syntactic", "width": 2 * SIZE}, "training": training},
        ),
        shown=_look(parser, corpus, chosen),
    )


def _heads(parser: Parser, batch: Batch) -> Tensor:
    """The heads (B, T) in the most probable tree: 0 for the root, words from 1 on."""
    return parser(batch).distribution.argmax()


def _look(parser: Parser, corpus: Corpus, sentence: Sentence) -> Shown:
    (batch,) = replace(corpus, test=[sentence]).batches("test")
    with torch.no_grad():
        read = parser(batch)
    words = tuple(features[0].removeprefix("word ") for features, _ in sentence)
    heads = read.distribution.argmax()[0]
    given = [head for _, head in sentence]
    return Shown(
        facts={
            "input": " ".join(words),
            "output": heads.tolist(),
            "reference": given,
            "probability": round(read.distribution.log_prob(heads[None]).exp().item(), 5),
        },
        trace=AttentionTrace(
            kind="syntactic",
            sources=words,
            targets=words,
            weights=rounded(read.weights[0]),
            best=tuple(map(tuple, one_hot(heads, len(words) + 1)[:, 1:].bool().tolist())),
        ),
    )
