"""Call the ops of the C++ kernels with random arguments, valid or not, and check that none crashes.

    python tests/native/fuzz_ops.py --calls 3000 --seed 0

An op either refuses its arguments with an error, or returns tensors of the shapes that it returns
for meta tensors. Invalid arguments are valid ones with one change: an axis, a size, a dtype, the
device, or strides and numbers, which every op must accept. All calls run in this process, and a
read outside a buffer ends it. `scripts/sanitize_kernels.py` runs this on a build with sanitizers.
"""

import argparse
import faulthandler
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import foveal_native as foveal_native
import torch
from torch import Tensor

OPS = torch.ops.foveal_native
Arguments = list[Any]

BATCHES, SIZES = (0, 1, 2, 3, 17, 20), (1, 2, 3, 5, 8)
STATES = (1, 2, 3, 11, 17)  # few and many states use different kernels
ODD_NUMBERS = (torch.nan, torch.inf, -torch.inf, -3.4028234663852886e38, -1e30, 1e30, -1e16, 1e9)
ODD_DTYPES = (torch.float16, torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool)


def scores(*shape: int) -> Tensor:
    dtype = random.choice((torch.float32, torch.float64))
    return random.choice((1.0, 30.0)) * torch.randn(shape, dtype=dtype)


def mask_or_none(*shape: int) -> Tensor | None:
    return torch.rand(shape) > random.choice((0.0, 0.3, 1.0)) if random.random() < 0.6 else None


def uniforms(*shape: int) -> Tensor:
    return torch.rand(random.choice((0, 1, 3)), *shape, dtype=torch.float64)


def transitions_like(given: Tensor, states: int) -> Tensor:
    batch, steps = len(given), given.shape[1] - 1
    shape = (random.choice((1, batch)), random.choice((1, steps)), states, states)
    return torch.randn(shape, dtype=given.dtype)


def chain(name: str) -> Arguments:
    batch, length, states = (random.choice(sizes) for sizes in (BATCHES, SIZES, STATES))
    unary, mask = scores(batch, length, states), mask_or_none(batch, length)
    transitions = transitions_like(unary, states)
    if name.startswith("nodes"):
        transitions = torch.randn(1, 1, states, states, dtype=unary.dtype)
    given = [unary, transitions, mask]
    if name == "sample":
        return [*given, uniforms(batch, length)]
    if name == "nodes_tangent":
        return [*given, *OPS.chain_nodes(*given)[2:], torch.randn_like(unary)]
    if name == "tangent":
        _, nodes, pairs = OPS.chain_marginals(*given)
        on_nodes, on_pairs = (random.choice((None, torch.randn_like(x))) for x in (nodes, pairs))
        return [nodes, pairs, mask, on_nodes, on_pairs, random.random() < 0.5]
    return given


def semi_markov(name: str) -> Arguments:
    batch, length, lengths, labels = map(random.choice, (BATCHES, SIZES, (1, 2, 4), STATES))
    segments, mask = scores(batch, length, lengths, labels), mask_or_none(batch, length)
    given = [segments, transitions_like(segments, labels), mask]
    if name == "sample":
        return [*given, uniforms(batch, 2 * length)]
    if name == "tangent":
        _, found, pairs = OPS.semi_markov_marginals(*given)
        along = (random.choice((None, torch.randn_like(x))) for x in (found, pairs))
        return [found, pairs, mask, *along, random.random() < 0.5]
    return given


def k_subset(name: str) -> Arguments:
    batch, items = random.choice(BATCHES), random.choice((0, *SIZES))
    numbers, mask = scores(batch, items), mask_or_none(batch, items)
    given = [numbers, mask, random.choice((0, 1, 2, items, items + 1))]
    if name == "sample":
        return [*given, uniforms(batch, items)]
    if name == "tangent":
        _, found, kept = OPS.k_subset_marginals(*given)
        return [found, kept, mask, torch.randn_like(found)]
    return given


def alignment(name: str) -> Arguments:
    batch, rows, columns = random.choice(BATCHES), random.choice((*SIZES, 20)), random.choice(SIZES)
    moves, mask = scores(batch, rows, columns, 3), mask_or_none(batch, rows + columns - 2)
    if name == "sample":
        return [moves, mask, uniforms(batch, rows + columns - 2)]
    if name == "tangent":
        return [OPS.alignment_marginals(moves, mask)[1], mask, torch.randn_like(moves)]
    return [moves, mask]


def ctc(name: str) -> Arguments:
    del name  # both ops take the same
    batch, frames, symbols = random.choice(BATCHES), random.choice((0, *SIZES, 20)), 5
    size = random.choice((0, *SIZES, 17))
    blank = random.randrange(symbols)
    labels = (blank + torch.randint(1, symbols, (batch, size))) % symbols
    masks = mask_or_none(batch, frames), mask_or_none(batch, size)
    return [scores(batch, frames, symbols), labels, *masks, blank]


def span(name: str) -> Arguments:
    batch, words = random.choice(BATCHES), random.choice((0, *SIZES, 19))
    spans, mask = scores(batch, words, words), mask_or_none(batch, words)
    if name == "sample":
        return [spans, mask, uniforms(batch, words)]
    if name == "tangent":
        return [OPS.span_marginals(spans, mask, True)[2], mask, torch.randn_like(spans)]
    return [spans, mask, random.random() < 0.5] if name == "marginals" else [spans, mask]


def projective(name: str) -> Arguments:
    batch, words, single = random.choice(BATCHES), random.choice((0, *SIZES, 19)), flip()
    arcs, mask = scores(batch, words + 1, words + 1), mask_or_none(batch, words)
    if name == "sample":
        return [arcs, mask, uniforms(batch, 2 * words + 2), single]
    if name == "tangent":
        _, found, kept = OPS.projective_marginals(arcs, mask, single, True)
        return [found, kept, mask, torch.randn_like(arcs), single]
    return [arcs, mask, single, flip()] if name == "marginals" else [arcs, mask, single]


def spanning(name: str) -> Arguments:
    batch, words, single = random.choice(BATCHES), random.choice((0, *SIZES, 19)), flip()
    arcs, mask = scores(batch, words + 1, words + 1), mask_or_none(batch, words)
    if name == "sample":
        return [arcs, mask, torch.randint(0, 2**62, (random.choice((0, 1, 3)), batch)), single]
    if name == "tangent":
        kept = OPS.spanning_marginals(arcs, mask, single)[2:]
        return [arcs, mask, *kept, torch.randn_like(arcs), single]
    return [arcs, mask, single]


def search(name: str) -> Arguments:
    """Draw arguments of the ops of search; `search_pack` makes the weights, and has no shapes without data."""
    batch, each, units, length = map(random.choice, (BATCHES, (1, 2, 5, 40), (1, 5, 16, 20), SIZES))
    half = flip() and foveal_native.multiplies_in_half_precision()
    gates, rows, wide = (units + 15) // 16 * 64, 7, random.choice((1, 5, 70))

    def packed(*shape: int) -> Tensor:
        return OPS.search_pack(torch.randn(shape), half)

    if name == "product":
        bias = random.choice((None, torch.randn(wide)))
        return [torch.randn(batch, units), packed(units, wide), bias, wide, half]
    if name == "attend":
        query, shut = random.choice((0, *SIZES)), torch.zeros(batch, 1, length)
        shut.masked_fill_(torch.rand(shut.shape) < 0.3, -torch.inf)
        products, keys = torch.randn(batch, each, query + wide), torch.randn(batch, length, query)
        values = torch.randn(batch, length, wide)
        return [products, keys, torch.randn(query), values, random.choice((None, shut))]
    if name == "sequence":
        tokens = torch.randint(rows, (batch, length))
        lengths = torch.randint(length + 1, (batch,)).sort(descending=True).values
        scores = torch.randn(rows, gates) if flip() else torch.randn(batch * length, gates)
        outputs = torch.zeros(batch, length, units + 3)
        given = [scores, tokens if len(scores) == rows else None, lengths, packed(units, gates)]
        return [*given, flip(), half, units, random.choice((0, 3)), outputs]
    tokens, of_item = torch.randint(rows, (batch, each)), torch.randn(batch, gates)
    hidden, memory = torch.randn(2, batch, each, units)
    given = [torch.randn(rows, gates), tokens, random.choice((None, of_item)), hidden, memory]
    if name == "step":
        return [*given, packed(units, gates), half]
    keys, values = torch.randn(batch, length, 3), torch.randn(batch, length, units)
    weights = packed(units, gates), packed(units, 3 + units)
    return [
        *(*given, *weights, keys, torch.randn(3), values, None),
        *(packed(units, wide), torch.randn(wide), half),
    ]


def flip() -> bool:
    return random.random() < 0.5


STRUCTURES: tuple[Callable[[str], Arguments], ...] = (
    chain,
    semi_markov,
    k_subset,
    alignment,
    span,
    projective,
    spanning,
)
SHARED_NAMES = ("log_partition", "marginals", "tangent", "sample")
EXTRA_NAMES = {chain: ("best", "nodes", "nodes_tangent"), k_subset: ()}
CALLS = [
    (f"{structure.__name__}_{name}", structure, name)
    for structure in STRUCTURES
    for name in SHARED_NAMES + EXTRA_NAMES.get(structure, ("best",))
] + [
    (f"{structure.__name__}_{name}", structure, name)
    for structure, names in (
        (ctc, ("log_partition", "marginals")),
        (search, ("product", "step", "sequence", "attend", "decode")),
    )
    for name in names
]


def with_other_sizes(tensor: Tensor) -> Tensor:
    """Return a tensor with other axes, or with another size of one axis."""
    shape = list(tensor.shape)
    kind = random.choice(("drop", "add", "resize", "resize"))
    if kind == "add" or not shape:
        shape.insert(random.randint(0, len(shape)), random.choice((1, 2)))
    elif kind == "drop":
        del shape[random.randrange(len(shape))]
    else:
        axis = random.randrange(len(shape))
        shape[axis] = max(0, random.choice((0, 1, shape[axis] - 1, shape[axis] + 1, 50)))
    return torch.rand(shape).to(tensor.dtype)


def with_other_strides(tensor: Tensor) -> Tensor:
    """Return the same numbers as every second of a longer row, with the axes permuted in memory."""
    if tensor.dim() == 0:
        return tensor
    wide = tensor.transpose(0, -1).repeat_interleave(2, -1)
    return wide[..., ::2].transpose(0, -1)


def with_odd_numbers(tensor: Tensor) -> Tensor:
    """Replace some floats with numbers that no kernel expects; reverse integers and bools."""
    if not tensor.is_floating_point():
        return tensor.flip(0) if tensor.dim() else tensor
    chosen = torch.rand(tensor.shape) < random.choice((0.05, 0.5, 1.0))
    return torch.where(chosen, random.choice(ODD_NUMBERS), tensor)


def changed(argument: Any) -> Any:
    if argument is None:
        return random.choice((torch.rand(2, 3) > 0.5, torch.rand(1)))
    if isinstance(argument, bool):
        return not argument
    if isinstance(argument, int):
        return random.choice((-1, 0, 7, 10**12, -(2**63), 2**63 - 1))
    kind = random.randrange(6)
    if kind == 0:
        return argument.to(random.choice(ODD_DTYPES))
    if kind == 1:
        return argument.to("meta")
    if kind == 2:
        return with_other_sizes(argument)
    return with_other_strides(argument) if kind == 3 else with_odd_numbers(argument)


def describe(argument: Any) -> str:
    if isinstance(argument, Tensor):
        return f"{argument.dtype} {tuple(argument.shape)} on {argument.device}"
    return str(argument)


def shapes(found: Any) -> list[tuple[torch.Size, torch.dtype]]:
    if found is None:  # the op writes into its last argument
        return []
    return [(part.shape, part.dtype) for part in (found if isinstance(found, tuple) else (found,))]


def call(name: str, arguments: Arguments) -> bool:
    """Return whether the op accepted the arguments."""
    op = getattr(OPS, name)
    try:
        found = op(*arguments)
    except RuntimeError:  # an op refuses with this error; any other error is a bug
        return False
    without_data = [x.to("meta") if isinstance(x, Tensor) else x for x in arguments]
    expected = op(*without_data)
    if shapes(found) != shapes(expected):
        listing = ", ".join(map(describe, arguments))
        raise AssertionError(f"{name}({listing}) gave {shapes(found)}, not {shapes(expected)}")
    return True


def fuzz(num_calls: int, seed: int) -> Counter[str]:
    """Draw calls of all ops in turn; return how many were accepted and refused."""
    random.seed(seed)
    torch.manual_seed(seed)
    counts: Counter[str] = Counter()
    for index in range(num_calls):
        name, structure, kind = CALLS[index % len(CALLS)]
        arguments = structure(kind)
        for place in random.sample(range(len(arguments)), random.choice((0, 1, 1, 2))):
            arguments[place] = changed(arguments[place])
        counts["taken" if call(name, arguments) else "refused"] += 1
    return counts


def main() -> None:
    """Run the calls that the command line specifies."""
    faulthandler.enable()
    parser = argparse.ArgumentParser(description="Call the ops with drawn arguments.")
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    counts = fuzz(options.calls, options.seed)
    sys.stdout.write(
        f"{foveal_native.instruction_set()}: {options.calls} calls of {len(CALLS)} ops, "
        f"{counts['taken']} taken, {counts['refused']} refused, no crash\n"
    )


if __name__ == "__main__":
    main()
