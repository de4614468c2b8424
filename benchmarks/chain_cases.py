"""Chains of labels and chains of labeled segments in Foveal and in other libraries."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

from foveal.distributions import LinearChain, SemiMarkov

from .cases import SEED, US, Call, Case, Side, Size, case_of, without_gradient
from .peers import (
    PytorchCrfChain,
    TorchStructChain,
    TorchStructSegments,
    segments_as_edges,
    torch_struct_fits,
)
from .supar import load_supar


def chain_edges(size: Size) -> Case:
    """The chain as torch-struct has it: a score for every pair of neighboring labels.

    Potentials (B, T-1, K, K); marginals of the pairs, gradients in the pairs.
    """
    batch, length, states = size
    torch.manual_seed(SEED)
    edges = torch.randn(batch, length - 1, states, states)
    weights = torch.randn_like(edges)
    no_unary = torch.zeros(batch, length, states)

    def ours(potentials: Tensor = edges) -> LinearChain:
        return LinearChain(no_unary, potentials)

    def theirs(potentials: Tensor = edges) -> TorchStructChain:
        # torch-struct marks its input as requiring a gradient, so it gets an alias
        return TorchStructChain(potentials.detach())

    def train(pair_marginals: Callable[[Tensor], Tensor]) -> Call:
        def step() -> Tensor:
            leaf = edges.detach().requires_grad_()
            return torch.autograd.grad((pair_marginals(leaf) * weights).sum(), leaf)[0]

        return step

    every: dict[str, dict[str, Call]] = {
        "log_partition": {
            US: without_gradient(lambda: ours().log_partition()),
            "torch-struct": without_gradient(lambda: theirs().log_partition()),
        },
        "marginals": {
            US: without_gradient(lambda: ours().pair_marginals()),
            "torch-struct": lambda: theirs().pair_marginals(),
        },
        "train": {
            US: train(lambda leaf: ours(leaf).pair_marginals()),
            "torch-struct": train(lambda leaf: TorchStructChain(leaf).pair_marginals()),
        },
        "argmax": {US: lambda: ours().argmax(), "torch-struct": lambda: theirs().argmax()},
        "sample": {US: lambda: ours().sample((1,)), "torch-struct": lambda: theirs().sample(1)},
        "sample x10": {
            US: lambda: ours().sample((10,)),
            "torch-struct": lambda: theirs().sample(10),
        },
    }
    too_large = [name for name in every if not torch_struct_fits(name, (batch, length, states))]
    for name in too_large:
        del every[name]["torch-struct"]
    return Case(
        operations=every,
        left_out=tuple(
            f"chain {name} {size}: torch-struct is left out, its scan does not fit into memory"
            for name in too_large
        ),
    )


def chain_unary(size: Size) -> Case:
    """The chain as pytorch-crf and supar have it: a score for every label, and shared transitions.

    Potentials (B, T, K) and (K, K); marginals of the labels, gradients in both potentials.
    """
    batch, length, states = size
    torch.manual_seed(SEED)
    unary = torch.randn(batch, length, states)
    transitions = torch.randn(states, states)
    weights = torch.randn_like(unary)
    crf = PytorchCrfChain(transitions)

    def ours() -> LinearChain:
        return LinearChain(unary, transitions)

    def our_step() -> tuple[Tensor, ...]:
        scores, links = unary.detach().requires_grad_(), transitions.detach().requires_grad_()
        loss = (LinearChain(scores, links).marginals() * weights).sum()
        return torch.autograd.grad(loss, (scores, links))

    def their_marginals() -> Tensor:
        return crf.marginals(unary.detach().requires_grad_(), differentiable=False)

    def their_step() -> tuple[Tensor, ...]:
        scores = unary.detach().requires_grad_()
        return torch.autograd.grad(
            (crf.marginals(scores) * weights).sum(), (scores, crf.transitions)
        )

    def supar_step() -> tuple[Tensor, ...]:
        scores, links = unary.detach().requires_grad_(), transitions.detach().requires_grad_()
        # its table has a row and a column more, for the start and the end
        chain = load_supar().LinearChainCRF(scores, pad(links, (0, 1, 0, 1)))
        return torch.autograd.grad((chain.marginals * weights).sum(), (scores, links))

    return Case(
        operations={
            "log_partition": {
                US: without_gradient(lambda: ours().log_partition()),
                "pytorch-crf": without_gradient(lambda: crf.log_partition(unary)),
            },
            "marginals": {
                US: without_gradient(lambda: ours().marginals()),
                "pytorch-crf": their_marginals,
            },
            "train": {US: our_step, "pytorch-crf": their_step, "supar": supar_step},
            "argmax": {
                US: lambda: ours().argmax(),
                "pytorch-crf": without_gradient(lambda: crf.argmax(unary)),
            },
            "sample": {US: lambda: ours().sample((1,))},
            "sample x10": {US: lambda: ours().sample((10,))},
        }
    )


def semi_markov(size: Size) -> Case:
    """Segments scored by start, length and label, and transitions at every position.

    Marginals of the segments, gradients in both potentials; torch-struct has one score for each
    segment with the label that follows it, which is both.
    """
    batch, length, num_lengths, labels = size
    torch.manual_seed(SEED)
    segments = torch.randn(batch, length, num_lengths, labels)
    transitions = torch.randn(batch, length - 1, labels, labels)
    weights = torch.randn_like(segments)
    no_transitions = torch.zeros_like(transitions)
    return case_of(
        {
            US: Side(make=SemiMarkov, potentials=(segments, transitions), weights=weights),
            "torch-struct": Side(
                make=TorchStructSegments,
                potentials=(segments_as_edges(segments, transitions),),
                weights=segments_as_edges(weights, no_transitions, forbidden=0.0),
            ),
        }
    )
