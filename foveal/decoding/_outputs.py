"""Trace the N best outputs back from the journal of a search.

    slot_T = the hypothesis that ended,   slot_{t-1} = parents[ t, slot_t ]

Axes: B items, N outputs, K hypotheses, T steps, S positions in memory.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ._beams import END_LOG_PROBS, ENDED, LOG_PROBS, PARENTS, TOKENS, WAS_DONE, WEIGHTS, Searched
from ._hypotheses import Hypotheses, check_found
from ._limits import Limit


def best_outputs(
    search: str, searched: Searched, nbest: int, *, end: int, limit: Limit
) -> Hypotheses:
    """Return the N best of all hypotheses that ended or were truncated at the limit."""
    journal, cut, with_weights = searched
    T, K = journal.num_steps, cut.shape[1]
    was_done = journal.read(WAS_DONE, True)
    # An item may stay in the batch after it is done; its later hypotheses must not count.
    ended = journal.read(ENDED, -torch.inf).masked_fill(was_done, -torch.inf)
    scores, places = torch.cat([ended.flatten(1), cut], 1).topk(nbest)
    check_found(scores[:, 0], search)
    step, slot = places // K, places % K
    is_cut, absent = step == T, scores == -torch.inf
    longest = limit.longest if limit.each is None else limit.each.unsqueeze(1)
    # The number of tokens without the end symbol, and the length with it.
    num_written = torch.where(is_cut, longest, step).masked_fill_(absent, 0)
    lengths = torch.where(is_cut, num_written, num_written + 1).masked_fill_(absent, 0)
    size = int(lengths.max()) if len(lengths) else 1
    steps = torch.arange(size, device=slot.device)[:, None]
    written = steps < num_written.unsqueeze(1)
    parents = journal.read(PARENTS, 0)[:, :size]
    slots = _traced(parents, slot, written)
    tokens = journal.read(TOKENS, end)[:, :size].gather(2, slots)
    tokens = tokens.masked_fill_(~written, end)
    ending = steps == (lengths - 1).unsqueeze(1)
    log_probs = torch.where(
        written,
        journal.read(LOG_PROBS, 0.0)[:, :size].gather(2, slots),
        torch.where(ending, journal.read(END_LOG_PROBS, 0.0)[:, :size].gather(2, slots), 0.0),
    )
    weights = None
    if with_weights:
        # A token was chosen with the attention of its parent, the end symbol with its own attention.
        readers = torch.where(written, parents.gather(2, slots), slots).unsqueeze(3)
        weights = journal.read(WEIGHTS, 0.0)[:, :size]
        weights = weights.gather(2, readers.expand(-1, -1, -1, weights.shape[3]))
        weights = weights.masked_fill(~(written | ending).unsqueeze(3), 0.0).transpose(1, 2)
    return Hypotheses(tokens.transpose(1, 2), lengths, scores, log_probs.transpose(1, 2), weights)


def _traced(
    parents: Int[Tensor, "B T K"], slot: Int[Tensor, "B N"], written: Bool[Tensor, "B T N"]
) -> Int[Tensor, "B T N"]:
    """Compute the slot of each output at each step; after its last token, its last slot."""
    slots = []
    for before, real in zip(reversed(parents.unbind(1)), reversed(written.unbind(1)), strict=True):
        slots.append(slot)
        slot = torch.where(real, before.gather(1, slot), slot)
    return torch.stack(slots[::-1], 1)
