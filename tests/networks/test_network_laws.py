"""Every cell, encoder and decoder passes the public law suites."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from typing_extensions import override

from foveal.attention import (
    AttentionPooling,
    HierarchicalAttention,
    Memory,
    MultiHead,
    segment_attention,
    sentences_memory,
    softmax_attention,
)
from foveal.masking import linked_steps, previous_real
from foveal.networks import (
    AbstractBridge,
    AbstractCell,
    AbstractDecoder,
    AttentionDecoder,
    BahdanauDecoder,
    CellState,
    ConvolutionalEncoder,
    DocumentEncoder,
    ElmanCell,
    EveryStepBridge,
    FactsEncoder,
    FramesEncoder,
    GRUCell,
    ImageEncoder,
    InitialStateAndEveryStepBridge,
    InitialStateBridge,
    InputFeedingDecoder,
    LearnedStateBridge,
    LieAccessCell,
    LSTMCell,
    NoBridge,
    NTMCell,
    PlainDecoder,
    RecurrentStack,
    RecursiveEncoder,
    TextEncoder,
    TreeEncoder,
    WindowCell,
    recurrent_stack,
)
from foveal.networks._bridges import no_memory
from foveal.networks.recurrent._textbook import LogisticCell, TextbookGRUCell
from foveal.testing import check_cell, check_decoder, check_encoder

pytestmark = pytest.mark.slow

CELLS: list[type[AbstractCell]] = [ElmanCell, GRUCell, LSTMCell]


class LeakyCell(AbstractCell):
    """A user-defined cell without a fused kernel."""

    has_memory = False

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.project = nn.Linear(input_size, hidden_size)

    @override
    def forward(self, inputs: Tensor, state: CellState) -> CellState:
        return CellState(0.5 * state.hidden + torch.tanh(self.project(inputs)))


@pytest.mark.parametrize("cell", [*CELLS, LeakyCell, LogisticCell, TextbookGRUCell])
def test_a_cell_obeys_the_laws(cell: type[AbstractCell]) -> None:
    torch.manual_seed(0)
    check_cell(cell(3, 4))


@pytest.mark.parametrize("context", [1, 3])
def test_a_window_cell_obeys_the_laws(context: int) -> None:
    torch.manual_seed(0)
    check_cell(WindowCell(3, 4, context))


@pytest.mark.parametrize("num_heads", [1, 2])
def test_a_turing_machine_obeys_the_laws(num_heads: int) -> None:
    torch.manual_seed(0)
    check_cell(NTMCell(3, 4, num_rows=5, row_size=2, num_heads=num_heads))


def test_a_lie_access_memory_obeys_the_laws() -> None:
    torch.manual_seed(0)
    check_cell(LieAccessCell(3, 4, num_rows=5, row_size=2))


def text_encoder(**options: Any) -> TextEncoder:
    return TextEncoder(nn.Embedding(9, 4), recurrent_stack(4, 4, **options))


@pytest.mark.parametrize(
    "encoder",
    [
        text_encoder,
        lambda: text_encoder(cell=GRUCell, num_layers=2, residual=True),
        lambda: text_encoder(cell=ElmanCell, num_layers=3, skip=True, residual=True),
        lambda: text_encoder(num_layers=2, bidirectional=True, residual=True, skip=True),
        lambda: text_encoder(cell=LeakyCell, bidirectional=True),
        lambda: text_encoder(cell=WindowCell, num_layers=2, bidirectional=True),
    ],
)
def test_a_text_encoder_obeys_the_laws(encoder: Callable[[], TextEncoder]) -> None:
    torch.manual_seed(1)
    check_encoder(encoder(), torch.randint(9, (4, 6)), (4, 6))


def test_a_text_encoder_with_a_learned_state_obeys_the_laws() -> None:
    torch.manual_seed(1)
    stack = recurrent_stack(4, 4, num_layers=2, bidirectional=True)
    encoder = TextEncoder(nn.Embedding(9, 4), stack, learned_state=True)
    assert encoder.initial is not None
    for part in encoder.initial.parameters():
        nn.init.normal_(part)
    check_encoder(encoder, torch.randint(9, (4, 6)), (4, 6))


@pytest.mark.parametrize(
    "options", [{}, {"gated": False, "residual": False}, {"kernel_size": 5, "dilated": True}]
)
def test_a_convolutional_encoder_obeys_the_laws(options: dict[str, Any]) -> None:
    torch.manual_seed(1)
    encoder = ConvolutionalEncoder(nn.Embedding(9, 4), 6, num_layers=3, **options)
    check_encoder(encoder, torch.randint(9, (4, 6)), (4, 6))


@pytest.mark.parametrize(
    ("tree", "composition"),
    [("brackets", "lstm"), ("balanced", "tanh"), ("chain", "tensor")],
)
def test_a_recursive_encoder_obeys_the_laws(tree: Any, composition: Any) -> None:
    torch.manual_seed(1)
    encoder = RecursiveEncoder(nn.Embedding(9, 4), 6, composition=composition, tree=tree)
    tokens = torch.randint(9, (4, 7))
    tokens[0] = torch.tensor([2, 2, 7, 8, 3, 5, 3])
    check_encoder(encoder, tokens, (4, 7))


@pytest.mark.parametrize("pooled", [False, True])
def test_a_document_encoder_obeys_the_laws(pooled: bool) -> None:
    torch.manual_seed(2)
    pooling = AttentionPooling(softmax_attention(3, 4), 3) if pooled else None
    encoder = DocumentEncoder(text_encoder(), recurrent_stack(4, 5, bidirectional=True), pooling)
    documents = torch.randint(9, (4, 3, 5))
    check_encoder(encoder, documents, (4, 3, 5), memory_of=lambda document: document.sentences)


def test_words_in_sentences_are_any_leading_shape() -> None:
    torch.manual_seed(2)
    encoder = text_encoder(bidirectional=True)
    words = torch.randint(9, (4, 3, 5))
    check_encoder(encoder, words, (4, 3, 5), memory_of=lambda memory: memory._replace(summary=None))


def test_an_image_encoder_obeys_the_laws() -> None:
    torch.manual_seed(3)
    rows = recurrent_stack(6, 3, bidirectional=True)
    for encoder in (
        ImageEncoder(2, sizes=(4, 6)),
        ImageEncoder(2, sizes=(4, 6), strides=((2, 2), (2, 1)), rows=rows, positions=True),
        ImageEncoder(2, sizes=(4, 6), norm="batch").eval(),
        ImageEncoder(2, sizes=(4, 6), blocks=2),
        ImageEncoder(2, sizes=(4, 6), norm="batch", blocks=1, residual=False).eval(),
    ):
        check_encoder(encoder, torch.randn(4, 2, 9, 6), (4, 9, 6), over=lambda mask: mask[:, None])


def test_a_frames_encoder_obeys_the_laws() -> None:
    torch.manual_seed(4)
    speech = FramesEncoder(nn.Linear(5, 3), recurrent_stack(3, 4, bidirectional=True))
    check_encoder(speech, torch.randn(4, 6, 5), (4, 6))
    for regions in (1, 2):
        stack = recurrent_stack(3 * regions**2, 4)
        video = FramesEncoder(ImageEncoder(1, sizes=(3,)), stack, regions=regions)
        check_encoder(video, torch.randn(4, 6, 1, 5, 5), (4, 6))


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("max_facts", [None, 8])
def test_a_facts_encoder_obeys_the_laws(positions: bool, max_facts: int | None) -> None:
    torch.manual_seed(5)
    encoder = FactsEncoder(nn.Embedding(9, 4), positions=positions, max_facts=max_facts)
    check_encoder(encoder, torch.randint(9, (4, 3, 5)), (4, 3, 5))


class ChainOfWords(nn.Module):
    """A tree encoder whose trees are chains: the head of a word is the real word before it."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = TreeEncoder(3, 4)

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Memory:
        real = torch.ones(inputs.shape[:-1], dtype=torch.bool) if mask is None else mask
        heads = torch.where(linked_steps(real), previous_real(real) + 1, 0)
        return self.tree(inputs, pad(heads, (1, 0)), mask)


def test_a_tree_encoder_obeys_the_laws() -> None:
    torch.manual_seed(6)
    check_encoder(ChainOfWords(), torch.randn(4, 5, 3), (4, 5))


BRIDGES: dict[str, Callable[[RecurrentStack], AbstractBridge]] = {
    "initial state": lambda stack: InitialStateBridge(6, stack),
    "every step": lambda stack: EveryStepBridge(6),
    "learned": LearnedStateBridge,
    "both": lambda stack: InitialStateAndEveryStepBridge(6, stack),
}


def memory_of_sequences(*, summary: bool) -> Memory:
    mask = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0]]).bool()
    return Memory(torch.randn(4, 4, 6), mask, torch.randn(4, 6) if summary else None)


def decoder_with(
    kind: str,
    bridge: str,
    *,
    tie_embeddings: bool = False,
    cell: type[AbstractCell] = LSTMCell,
    copy: bool = False,
    point_end: int | None = None,
) -> AbstractDecoder | BahdanauDecoder:
    embedding = nn.Embedding(9, 5)
    width = 5 + (0 if bridge in ("initial state", "learned") else 6)
    width += {"feeding": 5, "before": 6, "deep": 6}.get(kind, 0)
    stack = recurrent_stack(width, 5, cell=cell, num_layers=2, residual=True, dropout=0.1)
    parts: dict[str, Any] = {
        "embedding": embedding,
        "stack": stack,
        "bridge": BRIDGES[bridge](stack),
        "tie_embeddings": tie_embeddings,
        "dropout": 0.2,
    }
    if kind == "plain":
        return PlainDecoder(**parts)
    parts |= {"copy": copy, "point_end": point_end}
    if kind == "attention":
        read = softmax_attention(5, 6) if copy or point_end else segment_attention(5, 6)
        return AttentionDecoder(**parts, attention=read, value_size=6)
    attention = softmax_attention(5, 6)
    if kind in ("before", "deep"):
        deep_size = 5 if kind == "deep" else None
        return BahdanauDecoder(**parts, attention=attention, value_size=6, deep_size=deep_size)
    return InputFeedingDecoder(**parts, attention=attention, value_size=6, vector_size=5)


@pytest.mark.parametrize("bridge", BRIDGES)
@pytest.mark.parametrize("kind", ["plain", "attention", "feeding", "before", "deep"])
def test_a_decoder_obeys_the_laws(kind: str, bridge: str) -> None:
    torch.manual_seed(7)
    check_decoder(decoder_with(kind, bridge), memory_of_sequences(summary=True), 9)


@pytest.mark.parametrize("kind", ["attention", "feeding", "before"])
def test_a_decoder_that_copies_obeys_the_laws(kind: str) -> None:
    torch.manual_seed(11)
    memory = memory_of_sequences(summary=True)._replace(copies=torch.randint(9, (4, 4)))
    check_decoder(decoder_with(kind, "initial state", copy=True), memory, 9)


@pytest.mark.parametrize("kind", ["attention", "feeding", "before", "deep"])
def test_a_decoder_that_points_obeys_the_laws(kind: str) -> None:
    torch.manual_seed(11)
    memory = memory_of_sequences(summary=True)._replace(copies=torch.randint(4, 9, (4, 4)))
    check_decoder(decoder_with(kind, "initial state", point_end=3), memory, 9)


@pytest.mark.parametrize("cell", [ElmanCell, GRUCell])
@pytest.mark.parametrize("kind", ["plain", "attention", "feeding", "before", "deep"])
def test_a_decoder_with_tied_embeddings_and_no_summary(kind: str, cell: type[AbstractCell]) -> None:
    torch.manual_seed(8)
    decoder = decoder_with(kind, "both", tie_embeddings=True, cell=cell)
    check_decoder(decoder, memory_of_sequences(summary=False), 9)


def test_a_language_model_obeys_the_laws() -> None:
    torch.manual_seed(9)
    decoder = PlainDecoder(
        embedding=nn.Embedding(9, 4), stack=recurrent_stack(4, 5), bridge=NoBridge()
    )
    check_decoder(decoder, no_memory(4), 9)


@pytest.mark.parametrize("kind", [AttentionDecoder, InputFeedingDecoder, BahdanauDecoder])
def test_decoders_read_words_in_sentences_and_heads(kind: Any) -> None:
    more: dict[str, Any] = {} if kind is BahdanauDecoder else {"vector_size": 5}
    fed_size = {AttentionDecoder: 0, InputFeedingDecoder: 5, BahdanauDecoder: 6}[kind]
    torch.manual_seed(10)
    mask = torch.rand(4, 2, 3) < 0.7
    mask[:, 0, 0] = True
    words = sentences_memory(torch.randn(4, 2, 3, 6), mask)
    levels = HierarchicalAttention(softmax_attention(6, 6), softmax_attention(6, 6))
    heads = MultiHead(segment_attention(3, 3), num_heads=2, query_size=6, value_size=6)
    for memory, attention in ((words, levels), (memory_of_sequences(summary=False), heads)):
        stack = recurrent_stack(4 + fed_size, 6)
        decoder = kind(
            embedding=nn.Embedding(9, 4),
            stack=stack,
            bridge=InitialStateBridge(6, stack),
            attention=attention,
            value_size=6,
            **more,
        )
        check_decoder(decoder, memory, 9)
