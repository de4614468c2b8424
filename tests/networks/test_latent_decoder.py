"""A decoder that sums over alignments matches the enumeration of all alignments."""

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from foveal.attention import AdditiveScorer, Attended, BilinearScorer, Memory
from foveal.distributions import Categorical, LinearChain
from foveal.networks import (
    AbstractCell,
    ElmanCell,
    GRUCell,
    InitialStateAndEveryStepBridge,
    InitialStateBridge,
    LatentDecoder,
    LSTMCell,
    recurrent_stack,
)
from foveal.networks.decoders.latent import _decoder as module
from foveal.networks.decoders.latent._posterior import Posterior
from foveal.networks.decoders.latent._transitions import (
    AbstractTransitions,
    IndependentPositions,
    MonotonicTransitions,
)
from foveal.testing import check_decoder

pytestmark = pytest.mark.slow

WALKS: dict[str, AbstractTransitions] = {
    "free": IndependentPositions(),
    "forward": MonotonicTransitions(),
}
TOKENS = 5
MASK = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0]]).bool()


def decoder_with(
    walk: str,
    *,
    cell: type[AbstractCell] = LSTMCell,
    num_layers: int = 1,
    tie_embeddings: bool = False,
    both: bool = False,
    dropout: float = 0.2,
) -> LatentDecoder:
    stack = recurrent_stack(4 + (6 if both else 0), 5, cell=cell, num_layers=num_layers)
    return LatentDecoder(
        embedding=nn.Embedding(TOKENS, 4),
        stack=stack,
        bridge=InitialStateAndEveryStepBridge(6, stack) if both else InitialStateBridge(6, stack),
        scorer=BilinearScorer(5, 6) if tie_embeddings else AdditiveScorer(5, 6, hidden_size=3),
        walk=WALKS[walk],
        value_size=6,
        vector_size=4,
        tie_embeddings=tie_embeddings,
        dropout=dropout,
    )


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def alignments(
    decoder: LatentDecoder, tokens: Tensor, targets: Tensor, values: Tensor
) -> tuple[list[tuple[int, ...]], Tensor]:
    """Enumerate the alignments of one item, `tokens (T)` and `values (S, V)`, with log p(a, y) of
    each. It follows the definition and uses only the layers of the decoder.
    """
    memory = decoder.remember(Memory(values))
    state, hidden = decoder.start(memory), []
    for token in tokens:
        output, layers = decoder.advance(state, token, memory)
        state = state._replace(layers=layers)
        hidden.append(output)
    (scores,) = decoder.scorer(torch.stack(hidden), memory.keys.keys)

    def said(t: int, place: int) -> Tensor:
        vector = torch.tanh(decoder.combine(torch.cat([values[place], hidden[t]])))
        return decoder.output(vector, decoder.embedding)[targets[t]]

    walks, totals = [], []
    for walk in product(range(len(values)), repeat=len(tokens)):
        forward = isinstance(decoder.walk, MonotonicTransitions)
        if forward and list(walk) != sorted(walk):
            continue
        total = torch.zeros((), dtype=values.dtype)
        for t, place in enumerate(walk):
            reach = scores[t, walk[t - 1] if forward and t > 0 else 0 :]
            total = total + scores[t, place] - reach.logsumexp(-1) + said(t, place)
        walks.append(walk)
        totals.append(total)
    return walks, torch.stack(totals)


def case(walk: str) -> tuple[LatentDecoder, Tensor, Tensor, Tensor]:
    """Build a decoder in float64 with tokens, targets and values of one item."""
    decoder = decoder_with(walk).double().eval()
    nn.init.normal_(decoder.combine.weight)
    written = torch.randint(TOKENS, (4,))
    return decoder, written[:3], written[1:], torch.randn(3, 6, dtype=torch.float64)


@pytest.mark.parametrize("walk", WALKS)
def test_the_likelihood_and_its_gradients_are_those_of_all_alignments(walk: str) -> None:
    decoder, tokens, targets, values = case(walk)
    values.requires_grad_()
    leaves = [values, *decoder.parameters()]
    _, totals = alignments(decoder, tokens, targets, values)
    scored = decoder.score(tokens, targets, Memory(values))
    torch.testing.assert_close(scored.log_prob.sum(), totals.logsumexp(-1).detach())
    torch.testing.assert_close(
        torch.autograd.grad(-scored.loss.sum(), leaves, materialize_grads=True),
        torch.autograd.grad(totals.logsumexp(-1), leaves, materialize_grads=True),
    )


@pytest.mark.parametrize("walk", WALKS)
def test_the_weights_are_the_posterior_and_the_best_alignment_is_the_best_of_all(
    walk: str,
) -> None:
    decoder, tokens, targets, values = case(walk)
    walks, totals = alignments(decoder, tokens, targets, values)
    posterior = torch.zeros(3, 3, dtype=torch.float64)
    for each, probability in zip(walks, totals.softmax(-1), strict=True):
        for t, place in enumerate(each):
            posterior[t, place] += probability.detach()
    scored = decoder.score(tokens, targets, Memory(values))
    assert scored.weights is not None
    torch.testing.assert_close(scored.weights, posterior)
    best = decoder.best_alignment(tokens, targets, Memory(values))
    assert tuple(best.tolist()) == walks[int(totals.argmax())]
    kind = LinearChain if walk == "forward" else Categorical
    (read,) = scored.attended
    assert isinstance(read, Posterior)
    assert isinstance(read.distribution, kind)


@pytest.mark.parametrize("walk", WALKS)
def test_a_loss_on_the_weights_reaches_scores_and_output(walk: str) -> None:
    """Gradients of a loss on the attention weights reach scorer and output, so a model can learn
    from given alignments.
    """
    decoder, tokens, targets, values = case(walk)

    def aligned(values: Tensor) -> Tensor:
        weights = decoder.score(tokens, targets, Memory(values)).weights
        assert weights is not None
        return (weights + 0.01).log()[:, 1].sum()

    torch.autograd.gradcheck(aligned, values.requires_grad_())
    assert isinstance(decoder.scorer, AdditiveScorer)
    layers = [decoder.scorer.query.weight, decoder.combine.weight, decoder.output.bias]
    assert all(gradient.any() for gradient in torch.autograd.grad(aligned(values), layers))


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradients_of_the_loss_are_those_of_finite_differences(walk: str, smoothing: float) -> None:
    """Gradients pass gradcheck with a different weight for each step and padding in tokens and
    memory.
    """
    decoder = decoder_with(walk).double().eval()
    tokens, targets = torch.randint(TOKENS, (2, 2, 4))
    steps = torch.tensor([[1, 1, 0, 1], [0, 1, 1, 0]]).bool()
    share = torch.rand(2, 4, dtype=torch.float64)

    def loss(values: Tensor) -> Tensor:
        memory = Memory(values, MASK[1:3], torch.ones(2, 6, dtype=values.dtype))
        found = decoder.score(tokens, targets, memory, steps, label_smoothing=smoothing).loss
        return (found * share).sum()

    torch.autograd.gradcheck(loss, torch.randn(2, 4, 6, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize("walk", WALKS)
def test_all_outputs_together_have_probability_1(walk: str) -> None:
    """The probabilities of all texts of up to three tokens, finished or cut off after three, sum to
    1.
    """
    decoder, _, _, values = case(walk)
    begin, end, total = 0, 1, 0.0
    others = [token for token in range(TOKENS) if token != end]
    for length in range(4):
        for words in product(others, repeat=length):
            targets = torch.tensor([*words, end] if length < 3 else [*words])
            tokens = torch.cat([torch.tensor([begin]), targets[:-1]])
            total += float(decoder.score(tokens, targets, Memory(values)).log_prob.sum().exp())
    assert total == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("masked", [False, True])
def test_a_decoder_obeys_the_laws(walk: str, masked: bool) -> None:
    memory = Memory(torch.randn(4, 4, 6), MASK if masked else None, torch.randn(4, 6))
    check_decoder(decoder_with(walk, num_layers=2, both=True), memory, TOKENS)


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("cell", [ElmanCell, GRUCell])
def test_a_decoder_with_tied_embeddings_and_no_summary(walk: str, cell: type[AbstractCell]) -> None:
    check_decoder(
        decoder_with(walk, tie_embeddings=True, cell=cell), Memory(torch.randn(4, 4, 6), MASK), 5
    )


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_pieces_of_the_table_change_nothing(
    walk: str, smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = decoder_with(walk).double()
    tokens, targets = torch.randint(TOKENS, (2, 4, 7))
    steps = torch.rand(4, 7) < 0.7
    memory = Memory(torch.randn(4, 4, 6, dtype=torch.float64), MASK)
    found = []
    for table in (2**23, 4 * 4 * 5 * 3, 1):  # pieces of all steps, three steps, one step
        monkeypatch.setattr(module, "_TABLE", table)
        torch.manual_seed(3)  # same dropout masks
        scored = decoder.score(tokens, targets, memory, steps, label_smoothing=smoothing)
        gradients = torch.autograd.grad(scored.loss.sum(), list(decoder.parameters()))
        found.append((scored.loss, scored.weights, *gradients))
    for pieces in found[1:]:
        torch.testing.assert_close(pieces, found[0])


def test_memory_is_bounded_by_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backward pass keeps nothing of the table, which is by far the largest tensor."""
    monkeypatch.setattr(module, "_TABLE", 2**18)
    stack = recurrent_stack(8, 8)
    decoder = LatentDecoder(
        embedding=nn.Embedding(1_000, 8),
        stack=stack,
        bridge=InitialStateBridge(6, stack),
        scorer=AdditiveScorer(8, 6, hidden_size=3),
        walk=MonotonicTransitions(),
        value_size=6,
    )
    tokens, memory = torch.randint(9, (4, 32)), Memory(torch.randn(4, 20, 6))
    kept: list[int] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = decoder.score(tokens, tokens, memory).loss.sum()
    assert max(kept) < 2**17 < 3 * 4 * 20 * 1_000  # a piece has three steps
    loss.backward()


@pytest.mark.parametrize("walk", WALKS)
def test_any_leading_shape(walk: str) -> None:
    decoder = decoder_with(walk).eval()
    tokens, targets = torch.randint(TOKENS, (2, 4, 3))
    memory = Memory(torch.randn(4, 4, 6), MASK)
    whole = decoder.score(tokens, targets, memory)
    shaped = Memory(memory.values.view(2, 2, 4, 6), MASK.view(2, 2, 4))
    found = decoder.score(tokens.view(2, 2, 3), targets.view(2, 2, 3), shaped)
    assert whole.weights is not None
    assert found.weights is not None
    torch.testing.assert_close(found.loss.view(4, 3), whole.loss)
    torch.testing.assert_close(found.weights.view(4, 3, 4), whole.weights)


@pytest.mark.parametrize("walk", WALKS)
def test_an_item_without_places_reads_one_that_is_empty(walk: str) -> None:
    decoder = decoder_with(walk).eval()
    summary, tokens = torch.randn(1, 6), torch.tensor([[1, 2]])
    padded = Memory(torch.full((1, 3, 6), torch.nan), torch.zeros(1, 3).bool(), summary)
    found = decoder.unroll(tokens, padded).log_probs
    expected = decoder.unroll(tokens, Memory(torch.zeros(1, 1, 6), None, summary)).log_probs
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("walk", WALKS)
def test_alignments_of_padded_steps(walk: str) -> None:
    decoder = decoder_with(walk).eval()
    tokens, targets = torch.randint(TOKENS, (2, 2, 4))
    memory, steps = Memory(torch.randn(2, 4, 6), MASK[:2]), torch.tensor([[1, 1, 0, 1]] * 2).bool()
    best = decoder.best_alignment(tokens, targets, memory, steps)
    weights = decoder.score(tokens, targets, memory, steps).weights
    assert weights is not None
    for item in range(2):
        places = best[item, steps[item]]
        assert MASK[item, places].all()
        assert best[item, 2] == -1
        assert not weights[item, 2].any()
        if walk == "forward":
            assert (places.diff() >= 0).all()
    torch.testing.assert_close(weights.sum(-1), steps.float())


def test_what_a_step_reads_before_its_token_is_known() -> None:
    decoder = decoder_with("forward").eval()
    unrolled = decoder.unroll(torch.tensor([[1, 2, 3]]), Memory(torch.randn(1, 4, 6)))
    (read,) = unrolled.attended
    assert isinstance(read, Attended)
    torch.testing.assert_close(read.weights, read.distribution.marginals())
    torch.testing.assert_close(read.weights.sum(-1), torch.ones(1, 3))


def test_in_half_precision_sums_are_float32() -> None:
    decoder = decoder_with("forward").eval()
    tokens, memory = torch.randint(TOKENS, (4, 3)), Memory(torch.randn(4, 4, 6), MASK)
    exact = decoder.score(tokens, tokens, memory, label_smoothing=0.1)
    with torch.autocast("cpu", torch.bfloat16):
        rough = decoder.score(tokens, tokens, memory, label_smoothing=0.1)
    assert rough.loss.dtype == torch.float32
    torch.testing.assert_close(rough.loss, exact.loss, rtol=0.05, atol=0.05)
    rough.loss.sum().backward()
