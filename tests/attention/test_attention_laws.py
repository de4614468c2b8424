"""Every scorer, reader and named attention passes the public law suites."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from foveal.attention import (
    AbstractReader,
    AbstractScorer,
    AdditiveScorer,
    Attention,
    BiaffineScorer,
    BilinearScorer,
    DotScorer,
    ExpectedValue,
    LinearScorer,
    Memory,
    MultiHead,
    hard_attention,
    head_selection_attention,
    k_step_attention,
    local_attention,
    max_pooling,
    mean_pooling,
    monotone_attention,
    path_attention,
    scaled_dot_scorer,
    segment_attention,
    shift_attention,
    sigmoid_attention,
    softmax_attention,
    sparsemax_attention,
    spatial_attention,
    syntactic_attention,
)
from foveal.attention._grids import PathScorer
from foveal.attention._hard import SampledValue
from foveal.attention._readers import (
    AlignedValue,
    ExpectedChildReader,
    ExpectedHeadReader,
    ExpectedSelection,
    SelectedHeadReader,
)
from foveal.attention._scorers import LocalScorer
from foveal.attention._structured_scorers import ArcScorer, SelectionScorer, StepScorer
from foveal.attention.history._shift import ShiftScorer
from foveal.distributions import (
    AbstractDistribution,
    Alignment,
    Categorical,
    LinearChain,
    ProjectiveTree,
    SpanningTree,
    Sparsemax,
    Subset,
)
from foveal.distributions._sparse import AbstractSparseDistribution
from foveal.errors import ShapeError
from foveal.testing import check_attention, check_reader, check_scorer

pytestmark = pytest.mark.slow

SCORERS = {
    "additive": lambda: AdditiveScorer(4, 6, 5),
    "biaffine": lambda: BiaffineScorer(4, 6),
    "bilinear": lambda: BilinearScorer(4, 6),
    "bilinear, scaled": lambda: BilinearScorer(4, 6, scaled=True),
    "dot": DotScorer,
    "head": lambda: ArcScorer(4, 6, 5),
    "head, bounded": lambda: ArcScorer(4, 6, 5, bounded=True),
    "linear": lambda: LinearScorer(4, 6),
    "local": lambda: LocalScorer(AdditiveScorer(4, 6, 5), 4),
    "path": lambda: PathScorer(BilinearScorer(4, 6)),
    "scaled dot": lambda: scaled_dot_scorer(4),
    "selection": lambda: SelectionScorer(BilinearScorer(4, 6)),
    "shift": lambda: ShiftScorer(AdditiveScorer(4, 6, 5), 4),
    "step": lambda: StepScorer(BilinearScorer(4, 6), 6),
    "step, no repeat": lambda: StepScorer(BilinearScorer(4, 6), 6, repeat=False),
}


@pytest.mark.parametrize("name", SCORERS)
def test_a_scorer_obeys_the_laws(name: str) -> None:
    torch.manual_seed(0)
    scorer: AbstractScorer = SCORERS[name]()
    num_places = 3 if scorer.queries_are_places else 4
    check_scorer(scorer, 4, 4 if "dot" in name else 6, num_places=num_places)


def readers() -> dict[
    str, tuple[AbstractReader, AbstractDistribution | AbstractSparseDistribution]
]:
    generator = torch.Generator().manual_seed(1)

    def scores(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    mask = torch.tensor([[[True, False, True, True]], [[False, False, False, False]]])
    chain = LinearChain(scores(2, 3, 4, 2), scores(2, 2), mask=mask)
    return {
        "expected value": (ExpectedValue(), Categorical(scores(2, 3, 4), mask=mask)),
        "expected value of a subset": (ExpectedValue(), Subset(scores(2, 3, 4), mask=mask)),
        "expected selection": (ExpectedSelection(), chain),
        "expected selection, total 2": (ExpectedSelection(total=2.0), chain),
        "sampled value": (SampledValue(), Categorical(scores(2, 3, 4))),
        "aligned value": (AlignedValue(), Alignment.one_to_many(scores(2, 4, 3))),
        "sparsemax": (ExpectedValue(), Sparsemax(scores(2, 3, 4), mask=mask)),
        "soft heads": (ExpectedHeadReader(3), ProjectiveTree(scores(2, 5, 5))),
        "selected heads": (SelectedHeadReader(3), Categorical(scores(2, 4, 5))),
        "soft children": (ExpectedChildReader(), SpanningTree(scores(2, 5, 5), mask=mask[:, 0])),
    }


@pytest.mark.parametrize("name", readers())
def test_a_reader_obeys_the_laws(name: str) -> None:
    reader, distribution = readers()[name]
    check_reader(reader, distribution, num_places=4)


ATTENTIONS = {
    "hard": lambda: hard_attention(4, 6),
    "head selection": lambda: head_selection_attention(4, 6, 5),
    "k-step": lambda: k_step_attention(4, 6),
    "k-step, no repeat": lambda: k_step_attention(4, 6, repeat=False),
    "local": lambda: local_attention(4, 6),
    "monotone": lambda: monotone_attention(4, 6),
    "multi-head segment": lambda: MultiHead(
        segment_attention(2, 3), num_heads=2, query_size=4, value_size=6
    ),
    "multi-head softmax": lambda: MultiHead(
        softmax_attention(2, 3), num_heads=2, query_size=4, value_size=6
    ),
    "path": lambda: path_attention(4, 6),
    "path, as it is": lambda: path_attention(4, 6, total=None),
    "segment": lambda: segment_attention(4, 6),
    "segment, total 2": lambda: segment_attention(4, 6, total=2.0),
    "sigmoid": lambda: sigmoid_attention(4, 6),
    "shift": lambda: shift_attention(4, 6),
    "softmax": lambda: softmax_attention(4, 6),
    "softmax, bilinear": lambda: softmax_attention(4, 6, BilinearScorer(4, 6)),
    "sparsemax": lambda: sparsemax_attention(4, 6),
    "spatial": lambda: spatial_attention(4, 6),
    "syntactic": lambda: syntactic_attention(4, 6, 5),
    "syntactic, children": lambda: syntactic_attention(4, 6, 5, read="children"),
    "syntactic, not projective": lambda: syntactic_attention(4, 6, 5, projective=False),
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_an_attention_obeys_the_laws(name: str) -> None:
    torch.manual_seed(2)
    attention: Attention | MultiHead = ATTENTIONS[name]()
    words_ask = name.startswith(("syntactic", "head"))
    check_attention(attention, 4, 6, num_queries=5 if words_ask else 3, num_places=5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_an_attention_may_be_in_half_precision(name: str, dtype: torch.dtype) -> None:
    """The context has the dtype of the values and is close to the float32 context."""
    torch.manual_seed(2)
    attention = ATTENTIONS[name]().to(dtype).eval()
    values = torch.randn(2, 5, 6).to(dtype)
    query = torch.randn(2, 5 if name.startswith(("syntactic", "head")) else 3, 4).to(dtype)
    mask = torch.tensor([[True] * 5, [True, False, True, True, False]])
    read = attention(query, attention.remember(Memory(values, mask)))
    assert read.context.dtype == dtype
    read.context.float().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in attention.parameters())
    attention.float()
    exact = attention(query.float(), attention.remember(Memory(values.float(), mask)))
    torch.testing.assert_close(read.context.float(), exact.context, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_a_mask_of_numbers_is_refused(name: str) -> None:
    attention, memory = ATTENTIONS[name](), Memory(torch.zeros(2, 5, 6), torch.ones(2, 5))
    with pytest.raises(ShapeError, match=r"must be boolean.*got torch.float32. Pass mask.bool\(\)"):
        attention.remember(memory)


@pytest.mark.parametrize("pool", [mean_pooling, max_pooling])
def test_pooling_refuses_a_mask_of_numbers(pool: Callable[[Memory], Tensor]) -> None:
    with pytest.raises(ShapeError, match="must be boolean"):
        pool(Memory(torch.zeros(2, 5, 6), torch.ones(2, 5)))
