"""How much slower is a structured attention layer than softmax over the same scores?

    python -m benchmarks.attention

One layer, forward and backward, at 64 sentences x 12 queries x 25 keys, hidden size 256, one thread:
each named attention against softmax attention with the same additive scorer. Two more figures show
that all queries share one call: the number of operations does not depend on the number of queries, and
the memory kept for the backward pass grows linearly with it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from foveal.attention import (
    Attention,
    Memory,
    local_attention,
    segment_attention,
    sigmoid_attention,
    softmax_attention,
    sparsemax_attention,
    syntactic_attention,
)

from .results import Results, Row
from .timing import Plan, compare, use_one_thread

OUT = Path("results/attention.json")
BATCH, QUERIES, KEYS, HIDDEN = 64, 12, 25, 256

NAMED: dict[str, Callable[[], Attention]] = {
    "softmax": lambda: softmax_attention(HIDDEN, HIDDEN),
    "sigmoid": lambda: sigmoid_attention(HIDDEN, HIDDEN),
    "segment": lambda: segment_attention(HIDDEN, HIDDEN),
    "local": lambda: local_attention(HIDDEN, HIDDEN),
    "sparsemax": lambda: sparsemax_attention(HIDDEN, HIDDEN),
}
TARGETS = {"segment": 3.0}


def step(attention: Attention, queries: int) -> Callable[[], Tensor]:
    """Return a call that runs the layer forward and backward on one input."""
    torch.manual_seed(0)
    values = torch.randn(BATCH, KEYS, HIDDEN, requires_grad=True)
    query = torch.randn(BATCH, queries, HIDDEN, requires_grad=True)

    def run() -> Tensor:
        context = attention(query, attention.remember(Memory(values))).context
        context.sum().backward()
        return context

    return run


def syntactic_step() -> Callable[[], Tensor]:
    """Return such a call for syntactic attention, whose queries are the 25 words themselves."""
    return step(syntactic_attention(HIDDEN, HIDDEN, HIDDEN), KEYS)


def num_operations(attention: Attention, queries: int) -> int:
    """Count the torch operations of one forward and backward pass."""
    run = step(attention, queries)
    run()
    with profile(activities=[ProfilerActivity.CPU]) as found:
        run()
    return sum(1 for event in (found.events() or ()) if event.name.startswith("aten::"))


def kept_bytes(attention: Attention, queries: int) -> int:
    """Count the bytes that the forward pass keeps for the backward pass, each storage once."""
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    torch.manual_seed(0)
    values, query = torch.randn(BATCH, KEYS, HIDDEN), torch.randn(BATCH, queries, HIDDEN)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        attention(query, attention.remember(Memory(values))).context.sum()
    return sum(kept.values())


def measure() -> list[Row]:
    """Measure all rows."""
    candidates = {name: step(make(), QUERIES) for name, make in NAMED.items()}
    candidates["softmax, 25 queries"] = step(NAMED["softmax"](), KEYS)
    candidates["syntactic, 25 words"] = syntactic_step()
    plan = Plan(rounds=15)
    timings = compare(candidates, reference="softmax", plan=plan)
    rows = [
        Row(
            name=f"{name} attention, forward and backward, to softmax",
            value=timing.ratio,
            unit="x softmax",
            spread=timing.ratio_spread,
            target=TARGETS.get(name),
            sense="<=" if name in TARGETS else None,
        )
        for name, timing in timings.items()
        if name != "softmax"
    ]
    segment = NAMED["segment"]()
    operations = num_operations(segment, 24) / num_operations(segment, 12)
    memory = kept_bytes(segment, 48) / kept_bytes(segment, 24)
    return [
        *rows,
        Row(
            name="segment attention, operations at 24 queries to those at 12",
            value=operations,
            unit="ratio",
            target=1.1,  # a few more where the chain is made in runs of edges
            sense="<=",
        ),
        Row(
            name="segment attention, memory kept at 48 queries to that at 24",
            value=memory,
            unit="ratio",
            target=2.0,
            sense="<=",
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write all figures."""
    del arguments  # the command has no options
    use_one_thread()
    results = Results.here("python -m benchmarks.attention").with_rows(measure())
    results.save(OUT)
    table = Table("measured", "value", "spread", "target")
    for row in results.rows:
        spread = "" if row.spread is None else f"{row.spread[0]:.2f} to {row.spread[1]:.2f}"
        target = "" if row.target is None else f"{row.sense} {row.target:g}"
        table.add_row(row.name, f"{row.value:.2f} {row.unit}", spread, target)
    Console().print(table)


if __name__ == "__main__":
    main()
