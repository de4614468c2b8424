"""Find the head of every word: a distribution over trees on biaffine scores (Dozat & Manning 2017).

    p(tree | words) = SpanningTree(arcs),    arcs[h, d] = head_h . (W word_d + b)
    loss = -log p(gold tree),    answer = the most probable tree

The loss is that of the whole tree, by the matrix-tree theorem (Koo et al. 2007), not of each head
on its own. Arcs may cross, as in the treebank, and exactly one word hangs from the root.

Data: Universal Dependencies, English Web Treebank (CC BY-SA 4.0). The parser sees the words of the
treebank's own segmentation and nothing else: no parts of speech, no pretrained vectors. What is
printed is the unlabelled attachment score on the test file: the share of all words, punctuation
among them, with the right head. `foveal data get ud_english_ewt` gets the files.

Run: python examples/dependency_parser.py [--cut 500] [--epochs 10] [--seed 0]
"""

import torch
from support import Batch, BiLSTM, Corpus, Token, fit, parse_options, spelling
from torch import Tensor, nn

from foveal.distributions import SpanningTree

FILE = "ud_english_ewt/en_ewt-ud-{part}.conllu.gz"


class Parser(nn.Module):
    """A BiLSTM reads the sentence; every word is scored as the head of every other."""

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(num_features, 80)
        self.lstm = BiLSTM(4 * 80, 200, num_layers=2, dropout=0.2)
        self.root = nn.Parameter(torch.zeros(2 * 200))
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(2 * 200, 200), nn.ReLU())
        self.word = nn.Sequential(
            nn.Dropout(0.2), nn.Linear(2 * 200, 200), nn.ReLU(), nn.Linear(200, 200)
        )

    def forward(self, batch: Batch) -> SpanningTree:
        """The distribution over the trees of every sentence."""
        hidden = self.lstm(self.embed(batch.features).flatten(-2), batch.lengths)
        nodes = torch.cat([self.root.expand(len(hidden), 1, -1), hidden], dim=1)
        arcs = self.head(nodes) @ self.word(nodes).mT
        return SpanningTree(arcs, mask=batch.mask)


def token(line: str) -> Token | None:
    """A word and its head; None for comments, and for tokens that are split into words."""
    columns = line.split("\t")
    return (spelling(columns[1]), int(columns[6])) if columns[0].isdigit() else None


def attach_to_next(batch: Batch) -> Tensor:
    """The baseline: every word hangs from the next one, the last from the root."""
    following = torch.arange(2, batch.labels.shape[1] + 2)
    return torch.where(following <= batch.lengths[:, None], following, 0)


def main() -> None:
    """Train, then parse the test sentences."""
    options = parse_options(epochs=10)
    train, test = (FILE.format(part=part) for part in ("train", "test"))
    corpus = Corpus.read(train, test, token, cut=options.cut)
    parser = Parser(corpus.num_features)
    fit(parser, lambda batch: -parser(batch).log_prob(batch.labels), corpus, epochs=options.epochs)

    num_words = num_right = num_next = 0
    for batch in corpus.batches("test"):
        num_words += int(batch.mask.sum())
        num_right += int((parser(batch).argmax() == batch.labels)[batch.mask].sum())
        num_next += int((attach_to_next(batch) == batch.labels)[batch.mask].sum())
    print(f"every word attached to the next: {100 * num_next / num_words:.2f} %")
    print(f"test UAS: {100 * num_right / num_words:.2f} %")
    assert num_right > num_next, "the parser should beat the baseline"


if __name__ == "__main__":
    main()
