"""Biaffine scores of arcs and labels, against the equations written out."""

import torch

from foveal.attention import BiaffineLabeler, BiaffineScorer, Memory
from foveal.distributions import ProjectiveTree, SpanningTree


def test_arc_scores_follow_the_equation() -> None:
    torch.manual_seed(0)
    scorer = BiaffineScorer(3, 4).double()
    words, heads = torch.randn(2, 5, 3).double(), torch.randn(2, 5, 4).double()
    arcs = scorer(words, scorer.remember(heads))
    for item in range(2):
        for head in range(6):
            x = scorer.root if head == 0 else heads[item, head - 1]
            for word in range(1, 6):
                y = words[item, word - 1]
                expected = x @ scorer.word.weight @ y + scorer.word.bias @ x
                torch.testing.assert_close(arcs[item, head, word], expected)


def test_label_scores_follow_the_equation() -> None:
    torch.manual_seed(0)
    labeler = BiaffineLabeler(3, 4, num_labels=7).double()
    torch.nn.init.normal_(labeler.weight)
    words, values = torch.randn(2, 5, 3).double(), torch.randn(2, 5, 4).double()
    heads = torch.tensor([[2, 0, 2, 5, 3], [0, 1, 1, 1, -1]])
    scores = labeler(words, labeler.remember(values), heads)
    weight = labeler.weight.view(7, 4, 5)
    one = torch.ones(1).double()
    for item in range(2):
        for word in range(5):
            head = max(int(heads[item, word]), 0)
            x = torch.cat([labeler.root if head == 0 else values[item, head - 1], one])
            y = torch.cat([words[item, word], one])
            torch.testing.assert_close(scores[item, word], torch.stack([y @ w @ x for w in weight]))


def test_trees_take_the_scores_as_they_are() -> None:
    torch.manual_seed(0)
    scorer = BiaffineScorer(3, 4)
    memory = Memory(torch.randn(2, 5, 4))
    arcs = scorer(torch.randn(2, 5, 3), scorer.remember(memory.values))
    for tree in (SpanningTree(arcs), ProjectiveTree(arcs)):
        marginals = tree.marginals()
        torch.testing.assert_close(marginals[..., 1:].sum(-2), torch.ones(2, 5))
