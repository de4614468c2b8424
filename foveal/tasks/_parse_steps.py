"""Explain a dependency tree: for each word, list its most probable heads.

    p(head h, label k of word d) = p(h is the head of d) * p(k | arc from h to d)

Axes: n words, m = n + 1 words and the root, K labels.
"""

from collections.abc import Sequence

import torch

from ..models import Parses
from .explaining._explanation import Alternative, ExplainedStep


def parse_steps(
    parses: Parses, arcs: Sequence[str], names: Sequence[str], alternatives: int
) -> list[ExplainedStep]:
    """Return one step for each word of a sentence: the probability of each head, with the best label of its arc.

    Args:
        parses: Distribution over the trees of one sentence.
        arcs: Head and label of each word in the answer, for example `2:nsubj`.
        names: Names of the labels.
        alternatives: Maximum number of heads to list for each word.

    Returns:
        One step per word, in order.
    """
    size = len(arcs)
    marginals = parses.tree.marginals()[0, :, 1:]
    # (m, n, K): every word as the child of every head.
    every = [torch.full((1, size), head, device=marginals.device) for head in range(size + 1)]
    labels = torch.cat([parses.label_log_probs(heads) for heads in every]).exp()
    joint = (marginals.unsqueeze(-1) * labels).transpose(0, 1)  # (n, m, K)
    steps = []
    for arc, table in zip(arcs, joint, strict=True):
        best, label = table.max(-1)
        top = best.topk(min(alternatives, len(best)))
        listed = tuple(
            Alternative(f"{head}:{names[int(label[head])]}", probability)
            for head, probability in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        )
        head, _, name = arc.partition(":")
        chosen = table[int(head), names.index(name)].item()
        steps.append(ExplainedStep(arc, chosen, listed))
    return steps
