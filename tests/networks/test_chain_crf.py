"""A CRF head against enumeration of its taggings."""

from itertools import product

import torch

from foveal.networks import ChainCRF

MASK = torch.tensor(
    [
        [True, True, True, True],
        [False, True, False, True],
        [False, False, True, False],
        [False, False, False, False],
    ]
)


def a_head() -> tuple[ChainCRF, torch.Tensor]:
    """Build a CRF head with random scores, and vectors for four sequences."""
    torch.manual_seed(0)
    crf = ChainCRF(input_size=5, num_tags=3).double()
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    return crf, torch.randn(4, 4, 5, dtype=torch.float64)


def test_a_crf_is_enumeration() -> None:
    crf, hidden = a_head()
    chain, unary = crf(hidden, MASK), crf.unary(hidden)
    for item, real in enumerate(MASK):
        rows = unary[item, real]
        every = list(product(range(3), repeat=len(rows)))
        scores = torch.stack([score_of(crf, rows, tags) for tags in every])
        torch.testing.assert_close(chain.log_partition()[item], scores.logsumexp(0))
        best = chain.argmax()[item]
        assert tuple(best[real].tolist()) == every[int(scores.argmax())]
        values = torch.full((len(every), 1, 4), -1)
        values[:, 0, real] = torch.tensor(every, dtype=torch.long)
        torch.testing.assert_close(
            chain[item : item + 1].log_prob(values)[:, 0], scores.log_softmax(0)
        )


def score_of(crf: ChainCRF, unary: torch.Tensor, tags: tuple[int, ...]) -> torch.Tensor:
    """Return the score of the tags of real tokens."""
    total = unary.new_zeros(())
    if tags:
        total = total + crf.start[tags[0]] + crf.end[tags[-1]]
    for t, tag in enumerate(tags):
        total = total + unary[t, tag]
        if t:
            total = total + crf.transitions[tags[t - 1], tag]
    return total


def test_gradients_reach_every_parameter_and_no_padding() -> None:
    crf, hidden = a_head()
    hidden[~MASK] = torch.nan
    hidden.requires_grad_()
    loss = -crf(hidden, MASK).log_prob(torch.zeros(4, 4, dtype=torch.long)).sum()
    loss.backward()
    for parameter in (*crf.parameters(), hidden):
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
        assert parameter.grad.any()
    assert hidden.grad is not None
    assert not hidden.grad[~MASK].any()
