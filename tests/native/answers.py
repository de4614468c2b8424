"""Results of the structures with kernels, in the path that FOVEAL_KERNELS chooses.

    python answers.py OUT

test_paths.py runs this program once for each path; it writes the results to OUT.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from foveal.distributions import (
    AbstractDistribution,
    Alignment,
    KSubset,
    LinearChain,
    ProjectiveTree,
    SemiMarkov,
    SpanningTree,
    SpanTree,
)

Answers = dict[str, Tensor]

# Batch and words: small batches are computed one by one, large ones side by side in the lanes.
SENTENCES = ((3, 1), (4, 5), (2, 18), (3, 33), (19, 6), (33, 18), (16, 33))


def drawn(seed: int, *shape: int, spread: float = 3.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return spread * torch.randn(shape, generator=generator, dtype=torch.float64)


def forbidden(scores: Tensor, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.where(torch.rand(scores.shape, generator=generator) < 0.1, -torch.inf, scores)


def masked(seed: int, *shape: int) -> Tensor:
    """Return a mask with right padding of any length, and holes in every third row."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, shape[-1] + 1, shape[:-1], generator=generator)
    mask = torch.arange(shape[-1]) < lengths.unsqueeze(-1)
    mask[::3] &= torch.rand(mask[::3].shape, generator=generator) > 0.3
    return mask


def answers_of(
    name: str, distribution: AbstractDistribution, marginals: Tensor, leaves: list[Tensor]
) -> Answers:
    """Return the log-partition, the marginals, and the gradients of both."""
    log_partition = distribution.log_partition()
    possible = torch.where(log_partition > -torch.inf, log_partition, 0.0).sum()
    weights = drawn(9, *marginals.shape).to(marginals.dtype)
    first = torch.autograd.grad(possible, leaves, retain_graph=True)
    second = torch.autograd.grad((marginals * weights).sum(), leaves)
    parts = (log_partition, marginals, *first, *second)
    return {f"{name} {i}": part.detach() for i, part in enumerate(parts)}


def chains() -> Answers:
    found: Answers = {}
    sizes = [(19, 7, 2), (3, 1, 2), (2, 30, 5), (18, 9, 10), (5, 8, 17), (2, 6, 40)]
    for dtype in (torch.float32, torch.float64):
        for case, (batch, length, states) in enumerate(sizes):
            for shape in ((batch, length - 1), (1, 1)):
                mask = masked(case, batch, length) if case % 2 else None
                scores = drawn(case, batch, length, states), drawn(case, *shape, states, states)
                leaves = [forbidden(part, 5).to(dtype).requires_grad_() for part in scores]
                links = leaves[1] if shape != (1, 1) else leaves[1].squeeze((0, 1))
                chain = LinearChain(leaves[0], links, mask)
                name = f"chain {dtype} {case} {shape}"
                found |= answers_of(f"{name} nodes", chain, chain.marginals(), leaves)
                found |= answers_of(f"{name} pairs", chain, chain.pair_marginals(), leaves)
                found[f"{name} best"] = chain.topk(1).log_probs
    return found


def trees() -> Answers:
    found: Answers = {}
    for dtype in (torch.float32, torch.float64):
        for case, (batch, words) in enumerate(SENTENCES):
            mask = masked(case, batch, words) if case % 2 else None
            for single_root in (True, False):
                scores = forbidden(drawn(case, batch, words + 1, words + 1), 5)
                arcs = scores.to(dtype).requires_grad_()
                tree = ProjectiveTree(arcs, single_root=single_root, mask=mask)
                name = f"tree {dtype} {case} {single_root}"
                found |= answers_of(name, tree, tree.marginals(), [arcs])
                found[f"{name} best"] = tree.topk(1).log_probs
    return found


def bracketings() -> Answers:
    found: Answers = {}
    for dtype in (torch.float32, torch.float64):
        for case, (batch, words) in enumerate(SENTENCES):
            mask = masked(case, batch, words) if case % 2 else None
            for labels in ((), (3,)):
                scores = forbidden(drawn(case, batch, words, words, *labels), 5)
                spans = scores.to(dtype).requires_grad_()
                tree = SpanTree(spans, mask, labeled=bool(labels))
                name = f"bracketing {dtype} {case} {labels}"
                found |= answers_of(name, tree, tree.marginals(), [spans])
                found[f"{name} best"] = tree.topk(1).log_probs
    return found


def segmentations() -> Answers:
    found: Answers = {}
    sizes = [
        (19, 7, 3, 2),
        (3, 1, 2, 2),
        (2, 30, 4, 5),
        (18, 9, 12, 3),
        (5, 8, 2, 17),
        (2, 6, 3, 33),
    ]
    for dtype in (torch.float32, torch.float64):
        for case, (batch, length, lengths, labels) in enumerate(sizes):
            for shape in ((batch, length - 1), (1, 1)):
                mask = masked(case, batch, length) if case % 2 else None
                scores = (
                    drawn(case, batch, length, lengths, labels),
                    drawn(case, *shape, labels, labels),
                )
                leaves = [forbidden(part, 5).to(dtype).requires_grad_() for part in scores]
                links = leaves[1] if shape != (1, 1) else leaves[1].squeeze((0, 1))
                model = SemiMarkov(leaves[0], links, mask)
                name = f"segmentation {dtype} {case} {shape}"
                found |= answers_of(f"{name} segments", model, model.marginals(), leaves)
                found |= answers_of(f"{name} pairs", model, model.pair_marginals(), leaves)
                found[f"{name} best"] = model.topk(1).log_probs
    return found


def alignments() -> Answers:
    found: Answers = {}
    sizes = [(2, 0, 0), (2, 0, 5), (2, 4, 0), (4, 3, 4), (3, 20, 33), (2, 40, 9), (5, 16, 16)]
    for dtype in (torch.float32, torch.float64):
        for case, (batch, num_source, num_target) in enumerate(sizes):
            scores = forbidden(drawn(case, batch, num_source + 1, num_target + 1, 3), 5)
            for sides in ((False, False), (True, False), (False, True), (True, True)):
                masks = [
                    masked(case, batch, size) if side else None
                    for side, size in zip(sides, (num_source, num_target), strict=True)
                ]
                moves = scores.to(dtype).requires_grad_()
                model = Alignment(moves, *masks)
                name = f"alignment {dtype} {case} {sides}"
                found |= answers_of(name, model, model.marginals(), [moves])
                found[f"{name} best"] = model.topk(1).log_probs
    return found


def spanning_trees() -> Answers:
    found: Answers = {}
    sizes = [(3, 1), (4, 5), (2, 18), (3, 33), (2, 7)]
    for dtype in (torch.float32, torch.float64):
        for case, (batch, words) in enumerate(sizes):
            mask = masked(case, batch, words) if case % 2 else None
            # The last case is outside the range of doubles.
            spread = 200.0 if case == len(sizes) - 1 else 3.0
            for single_root in (True, False):
                scores = forbidden(drawn(case, batch, words + 1, words + 1, spread=spread), 5)
                arcs = scores.to(dtype).requires_grad_()
                tree = SpanningTree(arcs, single_root=single_root, mask=mask)
                name = f"spanning tree {dtype} {case} {single_root}"
                found |= answers_of(name, tree, tree.marginals(), [arcs])
                found[f"{name} best"] = tree.topk(1).log_probs
    return found


def subsets() -> Answers:
    found: Answers = {}
    for dtype in (torch.float32, torch.float64):
        for case, (batch, items, k) in enumerate([(3, 1, 1), (19, 7, 3), (2, 30, 12), (5, 9, 9)]):
            mask = masked(case, batch, items) if case % 2 else None
            scores = forbidden(drawn(case, batch, items), 5).to(dtype).requires_grad_()
            subset = KSubset(scores, k, mask)
            name = f"subset {dtype} {case}"
            found |= answers_of(name, subset, subset.marginals(), [scores])
            found[f"{name} best"] = subset.topk(1).log_probs
    return found


def differing(found: Answers, expected: Answers) -> Iterator[str]:
    """Yield a message for each result that two paths do not share."""
    if found.keys() != expected.keys():
        yield f"results of one path only: {sorted(found.keys() ^ expected.keys())}"
    for name in found.keys() & expected.keys():
        tolerance = 1e-9 if expected[name].dtype == torch.float64 else 2e-5
        try:
            torch.testing.assert_close(found[name], expected[name], rtol=tolerance, atol=tolerance)
        except AssertionError as error:
            yield f"{name}: {error}"


def main() -> None:
    """Write all results."""
    torch.set_num_threads(1)
    found = chains() | trees() | bracketings() | segmentations() | alignments()
    found |= spanning_trees() | subsets()
    torch.save(found, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
