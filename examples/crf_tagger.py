"""Find the phrases of a sentence: a linear-chain CRF over a BiLSTM (Huang et al. 2015).

    p(tags | words) = LinearChain(scores of the BiLSTM, transitions)
    loss = -log p(gold tags),    answer = the most probable tags

Data: chunking of CoNLL-2000, whose files give every word with its part of speech; both are used,
no pretrained vectors. `foveal data get conll2000_chunking` gets the files. The program prints the F1 of the
shared task on its test file.

Run: python examples/crf_tagger.py [--cut 500] [--epochs 8] [--seed 0]
"""

import torch
from support import Batch, BiLSTM, Corpus, Numbering, Token, fit, parse_options, span_f1, spelling
from torch import nn

from foveal.distributions import LinearChain

FOLDER = "conll2000_chunking"
BASELINE = 77.07  # the shared task's own: the most frequent tag of each part of speech


class Tagger(nn.Module):
    """A BiLSTM scores the tags of every word; the chain adds which tag follows which."""

    def __init__(self, num_features: int, num_tags: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(num_features, 50)
        self.lstm = BiLSTM(5 * 50, 128)
        self.score = nn.Sequential(nn.Dropout(), nn.Linear(2 * 128, num_tags))
        self.transitions = nn.Parameter(torch.zeros(num_tags, num_tags))

    def forward(self, batch: Batch) -> LinearChain:
        """The distribution over the tags of every sentence."""
        words = self.embed(batch.features).flatten(-2)
        hidden = self.lstm(words, batch.lengths)
        return LinearChain(self.score(hidden), self.transitions, batch.mask)


def main() -> None:
    """Train, then tag the test sentences."""
    options, tags = parse_options(epochs=8), Numbering()

    def token(line: str) -> Token:
        word, pos, tag = line.split()
        return [*spelling(word), f"part of speech {pos}"], tags[tag]

    corpus = Corpus.read(f"{FOLDER}/train.txt.gz", f"{FOLDER}/test.txt.gz", token, cut=options.cut)
    tagger = Tagger(corpus.num_features, len(tags))
    fit(tagger, lambda batch: -tagger(batch).log_prob(batch.labels), corpus, epochs=options.epochs)
    tagged = ((tagger(batch).argmax(), batch.labels) for batch in corpus.batches("test"))
    f1 = span_f1(tagged, tags)
    print(f"test chunk F1: {f1:.2f} %")
    assert f1 > BASELINE, "the tagger should beat the shared task's baseline"


if __name__ == "__main__":
    main()
