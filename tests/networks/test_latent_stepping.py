"""Steps of a decoder with summed attention match teacher forcing and enumeration of the outputs."""

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from foveal.attention import AdditiveScorer, BilinearScorer, Memory
from foveal.decoding import Stepper, beam_search, greedy
from foveal.errors import ShapeError, ValueRangeError
from foveal.networks import (
    AbstractCell,
    GRUCell,
    InitialStateAndEveryStepBridge,
    LatentDecoder,
    LSTMCell,
    recurrent_stack,
)
from foveal.networks.decoders.latent._transitions import IndependentPositions, MonotonicTransitions
from foveal.networks.search import _latent_stepping as module, _matrix
from foveal.networks.search._latent_stepping import LatentStepper
from foveal.networks.search._stepping_state import SteppingState

WALKS = {"free": IndependentPositions(), "forward": MonotonicTransitions()}
BATCH, WIDTH, STEPS, TOKENS = 4, 3, 5, 7
MASK = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0]]).bool()


def decoder_with(
    walk: str, *, cell: type[AbstractCell] = LSTMCell, tie_embeddings: bool = False
) -> LatentDecoder:
    stack = recurrent_stack(5 + 6, 6, cell=cell)
    decoder = LatentDecoder(
        embedding=nn.Embedding(TOKENS, 5),
        stack=stack,
        bridge=InitialStateAndEveryStepBridge(6, stack),
        scorer=BilinearScorer(6, 6) if tie_embeddings else AdditiveScorer(6, 6, hidden_size=4),
        walk=WALKS[walk],
        value_size=6,
        vector_size=5,
        tie_embeddings=tie_embeddings,
        dropout=0.2,
    )
    nn.init.normal_(decoder.combine.weight)  # positions predict different tokens
    return decoder.eval()


def memory_for(*, masked: bool = True) -> Memory:
    return Memory(torch.randn(BATCH, 4, 6), MASK if masked else None, torch.randn(BATCH, 6))


def item_of(memory: Memory, item: int) -> Memory:
    """Return one item, without a batch axis."""
    assert memory.mask is not None
    assert memory.summary is not None
    return Memory(memory.values[item], memory.mask[item], memory.summary[item])


def widen(stepper: LatentStepper, state: SteppingState, width: int) -> SteppingState:
    return stepper.reorder(state, torch.zeros(stepper.batch_size(state), width, dtype=torch.long))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("cell", [LSTMCell, GRUCell])
@pytest.mark.parametrize("walk", WALKS)
def test_steps_equal_the_whole(
    walk: str, cell: type[AbstractCell], masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each hypothesis of each item, decoded step by step, has the probabilities of teacher forcing,
    with a few items of the table at a time or with all.
    """
    decoder = decoder_with(walk, cell=cell, tie_embeddings=cell is GRUCell)
    monkeypatch.setattr(module, "_TABLE", 2**20 if masked else WIDTH * 4 * TOKENS * 3)
    memory = memory_for(masked=masked)
    stepper = LatentStepper(decoder)
    assert isinstance(stepper, Stepper)
    tokens = torch.randint(TOKENS, (BATCH, WIDTH, STEPS))
    state = widen(stepper, stepper.start(memory), WIDTH)
    log_probs, weights = [], []
    for t in range(STEPS):
        state, said, read = stepper.step(state, tokens[..., t])
        assert not said.requires_grad
        log_probs.append(said)
        weights.append(read)
    for number in range(WIDTH):
        whole = decoder.unroll(tokens[:, number], memory)
        found = torch.stack([each[:, number] for each in log_probs], 1)
        torch.testing.assert_close(found, whole.log_probs, rtol=1e-5, atol=1e-5)
        read = torch.stack([each[:, number] for each in weights], 1)
        torch.testing.assert_close(read, whole.weights, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("walk", WALKS)
def test_hypotheses_continue_their_parents_and_items_leave(walk: str) -> None:
    """Steps stay right when the order and number of hypotheses and items change at every step."""
    decoder, memory = decoder_with(walk), memory_for()
    stepper = LatentStepper(decoder)
    state, written = stepper.start(memory), torch.zeros(BATCH, 1, 0, dtype=torch.long)
    items = torch.arange(BATCH)
    log_probs = torch.empty(0)
    for width, stay in ((1, [0, 1, 2, 3]), (4, [3, 1, 0]), (2, [2, 0, 1]), (3, [1, 0])):
        chosen = torch.tensor(stay)
        state, written, items = stepper.keep(state, chosen), written[chosen], items[chosen]
        assert stepper.batch_size(state) == len(stay)
        parents = torch.randint(written.shape[1], (len(stay), width))
        state = stepper.reorder(state, parents)
        index = parents.unsqueeze(-1).expand(-1, -1, written.shape[-1])
        tokens = torch.randint(TOKENS, (len(stay), width))
        written = torch.cat([written.gather(1, index), tokens.unsqueeze(-1)], -1)
        state, log_probs, _ = stepper.step(state, tokens)
    for row, item in enumerate(items.tolist()):
        for number in range(written.shape[1]):
            one = item_of(memory, item)
            whole = decoder.unroll(written[row, number], one).log_probs[-1]
            torch.testing.assert_close(log_probs[row, number], whole, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("walk", WALKS)
def test_a_stepper_keeps_nothing_and_changes_nothing(walk: str) -> None:
    stepper = LatentStepper(decoder_with(walk))
    starts = [stepper.start(memory_for()) for _ in range(2)]
    tokens = torch.randint(TOKENS, (STEPS, BATCH, 1))

    def alone(state: SteppingState) -> list[Tensor]:
        found = []
        for t in range(STEPS):
            state, log_probs, _ = stepper.step(state, tokens[t])
            found.append(log_probs)
        return found

    expected = [alone(state) for state in starts]
    states = list(starts)
    for t in range(STEPS):
        for number in range(2):
            states[number], log_probs, _ = stepper.step(states[number], tokens[t])
            assert torch.equal(log_probs, expected[number][t])


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("half", [False, True])
def test_junk_in_the_padding_of_a_memory_changes_nothing(walk: str, half: bool) -> None:
    stepper = LatentStepper(decoder_with(walk), half=half)
    memory, tokens = memory_for(), torch.randint(TOKENS, (BATCH, 1))
    clean = stepper.step(stepper.start(memory), tokens)
    for junk in (torch.nan, torch.inf, 1e30):
        dirty = memory.values.masked_fill(~MASK.unsqueeze(-1), junk)
        found = stepper.step(stepper.start(memory._replace(values=dirty)), tokens)
        assert torch.equal(found.log_probs, clean.log_probs)


@pytest.mark.parametrize("walk", WALKS)
def test_in_half_precision_steps_are_good_to_two_digits(
    walk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_matrix, "_MANY_ROWS", 1)
    decoder, memory = decoder_with(walk), memory_for()
    exact, half = LatentStepper(decoder), LatentStepper(decoder, half=True)
    state, rough = exact.start(memory), half.start(memory)
    for _ in range(STEPS):
        tokens = torch.randint(TOKENS, (BATCH, 1))
        state, expected, _ = exact.step(state, tokens)
        rough, found, _ = half.step(rough, tokens)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, expected, rtol=0.1, atol=0.1)
        assert not torch.equal(found, expected)


@pytest.mark.parametrize("walk", WALKS)
def test_a_wide_beam_finds_the_best_of_all_outputs_and_a_narrow_one_is_greedy(walk: str) -> None:
    decoder, memory, end = decoder_with(walk), memory_for(), 1
    stepper = LatentStepper(decoder)
    state, begin = stepper.start(memory), torch.zeros(BATCH, dtype=torch.long)
    parts = {"begin": begin, "end": end, "max_length": 3}
    beam = beam_search(stepper, state, **parts, beam_size=TOKENS**3, nbest=1)
    others = [token for token in range(TOKENS) if token != end]
    texts = [[*words, end] for n in range(3) for words in product(others, repeat=n)]
    texts += [list(words) for words in product(others, repeat=3)]
    for item in range(BATCH):
        scores = written_scores(decoder, item_of(memory, item), texts)
        best = texts[max(range(len(texts)), key=scores.__getitem__)]
        length = int(beam.lengths[item, 0])
        assert beam.tokens[item, 0, :length].tolist() == best[:length]
        assert beam.totals[item, 0].item() == pytest.approx(max(scores), abs=1e-4)
    narrow = beam_search(stepper, state, **parts, beam_size=1)
    straight = greedy(stepper, state, **parts)
    assert narrow.token_lists(end) == straight.token_lists(end)
    torch.testing.assert_close(narrow.totals, straight.totals)


def written_scores(decoder: LatentDecoder, memory: Memory, texts: list[list[int]]) -> list[float]:
    """Compute log p(text | memory) of each text; the begin token is 0."""
    targets = torch.tensor([[*text, *[0] * (3 - len(text))] for text in texts])
    lengths = torch.tensor([[len(text)] for text in texts])
    values, mask, summary, *_ = memory
    assert mask is not None
    assert summary is not None
    each = Memory(
        values.expand(len(texts), -1, -1),
        mask.expand(len(texts), -1),
        summary.expand(len(texts), -1),
    )
    tokens = torch.cat([torch.zeros(len(texts), 1, dtype=torch.long), targets[:, :-1]], -1)
    with torch.no_grad():
        scored = decoder.score(tokens, targets, each, torch.arange(3) < lengths)
    return scored.log_prob.sum(-1).tolist()


def test_what_was_written_says_where_it_was_read() -> None:
    """If only one position can emit a token, the next step infers that the decoder was at that
    position.
    """
    decoder, memory = decoder_with("forward"), memory_for(masked=False)
    stepper = LatentStepper(decoder)
    begin, token = torch.zeros(BATCH, 1, dtype=torch.long), torch.full((BATCH, 1), 3)
    state, _, before = stepper.step(stepper.start(memory), begin)
    assert state.decoder.own is not None
    sure = state.decoder.own.norms.clone()
    sure[..., :2] += 50.0  # at the first two positions every token has a probability of almost 0
    surely = state.decoder.own._replace(norms=sure)
    state = state._replace(decoder=state.decoder._replace(own=surely))
    after = stepper.step(state, token).weights
    assert before is not None
    assert after is not None
    assert (before[..., :2].sum(-1) > 0.01).all()
    assert (after[..., :2] < 1e-12).all()


@pytest.mark.parametrize("walk", WALKS)
def test_forced_weights_are_what_is_read(walk: str) -> None:
    decoder, memory = decoder_with(walk), memory_for()
    stepper = LatentStepper(decoder)
    state, tokens = stepper.start(memory), torch.zeros(BATCH, 1, dtype=torch.long)
    own = stepper.step(state, tokens)
    assert own.weights is not None
    again = stepper.step(state, tokens, own.weights)
    torch.testing.assert_close(again.log_probs, own.log_probs, rtol=1e-5, atol=1e-5)
    one = torch.zeros(BATCH, 1, 4)
    one[torch.arange(BATCH), 0, MASK.int().argmax(-1)] = 1.0
    forced = stepper.step(state, tokens, one)
    assert forced.weights is not None
    assert torch.equal(forced.weights, one)
    torch.testing.assert_close(forced.log_probs.exp().sum(-1), torch.ones(BATCH, 1))
    with pytest.raises(ShapeError, match="a weight for every position"):
        stepper.step(state, tokens, one[..., :2])
    assert stepper.selection(state, tokens) is None


def test_a_decoder_in_training_is_refused() -> None:
    with pytest.raises(ValueRangeError, match=r"Call decoder\.eval\(\) first"):
        LatentStepper(decoder_with("free").train())
