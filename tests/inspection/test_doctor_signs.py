"""Vital signs against their expected values, and the diagnoses of models broken on purpose."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.attention import Memory
from foveal.attention._scorers import AbstractScorer
from foveal.data import InMemory, Seq2SeqBatch
from foveal.inspection import vital_signs
from foveal.inspection.doctor._finding import Finding
from foveal.inspection.doctor._from_signs import from_signs
from foveal.inspection.doctor._recurrences import Recurrence, listening, recurrences
from foveal.inspection.doctor._remedies import Remedies
from foveal.inspection.doctor._through_time import course
from foveal.models import (
    ClassifierSpec,
    HardSpec,
    LanguageModelSpec,
    LatentHardSpec,
    LatentMonotoneSpec,
    LocalSpec,
    MultiHeadSpec,
    SegmentSpec,
    SigmoidSpec,
    SoftmaxSpec,
    SparsemaxSpec,
    TextEncoderSpec,
)
from foveal.networks import (
    AbstractEncoder,
    CellState,
    ElmanCell,
    GRUCell,
    LSTMCell,
    recurrent_stack,
)
from foveal.tasks import (
    AbstractTask,
    Classification,
    ClassificationSpec,
    LanguageModeling,
    LanguageModelingSpec,
    Transduction,
)
from tests.inspection.patients import HEALTHY, LABELS, LETTERS, counting, writing

pytestmark = pytest.mark.slow

Task = AbstractTask[Any]


def batch_of(task: Task, examples: Any, size: int = 12) -> Any:
    """Return examples of all lengths in one batch, or a text in segments."""
    if isinstance(task, LanguageModeling):
        return next(iter(task.batches(InMemory(tuple(examples)), batch_size=size)))
    return task.collate([task.encode(example) for example in examples[:size]])


def value(task: Task, batch: Any, path: str) -> float:
    found = vital_signs(task, batch)[path]
    assert isinstance(found, float)
    return found


def diagnosed(task: Task, batch: Any) -> dict[str, Finding]:
    found = list(from_signs(vital_signs(task, batch), Remedies(task.spec)))
    return {finding.name: finding for finding in found}


def alarms(task: Task, batch: Any) -> list[str]:
    return [name for name, each in diagnosed(task, batch).items() if each.severity == "alarm"]


def built(spec: Any, examples: Any = LETTERS) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return spec.build_from(examples)


# gradients through time


@torch.no_grad()
def make_linear(cell: ElmanCell, radius: float) -> None:
    """Set all singular values of the recurrent weights to `radius`, and let no input change the
    state. Then tanh has its largest slope, and each step multiplies a gradient by the radius, as in
    the lecture.
    """
    weights = cell.weights
    nn.init.orthogonal_(weights.hidden).mul_(radius)
    for other in (weights.input, weights.input_bias, weights.hidden_bias):
        other.zero_()


def plain_decoder() -> tuple[LanguageModeling, ElmanCell]:
    spec = LanguageModelingSpec(
        model=LanguageModelSpec(cell="elman", embedding_size=8, hidden_size=12), bptt_length=50
    )
    task = built(spec, counting(80))
    (cell,) = task.model.decoder.stack.cells_in_order()
    return task, cell


def plain_encoder() -> tuple[Classification, ElmanCell]:
    encoder = TextEncoderSpec(cell="elman", embedding_size=8, hidden_size=12, bidirectional=False)
    task = built(
        ClassificationSpec(model=ClassifierSpec(encoder=encoder, pooling="summary")), LABELS
    )
    (cell,) = task.model.encoder.stack.cells_in_order()
    return task, cell


def fifty_steps(task: Task) -> Any:
    if isinstance(task, LanguageModeling):
        return batch_of(task, counting(80), 6)
    long = [type(LABELS[0])(" ".join(["good"] * 50), "yes")] * 4
    return batch_of(task, long, 4)


@pytest.mark.parametrize("make", [plain_decoder, plain_encoder])
@pytest.mark.parametrize(
    ("radius", "factor", "name"),
    [(0.9, 0.00515, "vanishing gradient"), (1.1, 117.4, "exploding gradient")],
)
def test_the_lectures_factors_come_out(
    make: Callable[[], tuple[Task, ElmanCell]], radius: float, factor: float, name: str
) -> None:
    task, cell = make()
    make_linear(cell, radius)
    finding = diagnosed(task, fifty_steps(task))[name]
    assert finding.severity == "alarm"
    assert finding.numbers["steps"] == 50
    assert finding.numbers["factor"] == pytest.approx(radius**50, rel=1e-4)
    assert finding.numbers["factor"] == pytest.approx(factor, rel=1e-3)
    assert finding.numbers["rate"] == pytest.approx(radius, rel=1e-5)
    assert "cell=lstm" in finding.remedy
    assert finding.drawing.startswith("<svg")


def test_between_the_two_nothing_is_said() -> None:
    task, cell = plain_decoder()
    make_linear(cell, 0.99)
    assert not {"vanishing gradient", "exploding gradient"} & set(
        diagnosed(task, fifty_steps(task))
    )


@pytest.mark.parametrize("kind", [ElmanCell, GRUCell, LSTMCell])
def test_norms_are_those_of_the_product_of_jacobians(kind: Any) -> None:
    torch.manual_seed(0)
    cell, inputs, gradient = kind(3, 4), torch.randn(1, 5, 3), torch.randn(1, 4)
    read = Recurrence("cell", cell, inputs, torch.tensor([5]), cell.start([1]), gradient)
    states = [cell.start([1])]
    for x in inputs.unbind(1):
        states.append(cell(x, states[-1]))

    def whole(state: CellState) -> Tensor:
        return torch.cat([part[0] for part in state if part is not None])

    def step(flat: Tensor, x: Tensor) -> Tensor:
        parts = flat.chunk(2) if cell.has_memory else (flat, None)
        hidden, memory = parts[0], parts[1]
        state = CellState(hidden[None], None if memory is None else memory[None])
        return whole(cell(x, state))

    vector = whole(CellState(gradient, torch.zeros(1, 4) if cell.has_memory else None))
    expected = [float(vector.norm())]
    for t in reversed(range(5)):
        jacobian = torch.autograd.functional.jacobian(
            lambda flat, x=inputs[:, t]: step(flat, x), whole(states[t]).detach()
        )
        vector = vector @ jacobian
        expected.append(float(vector.norm()))
    relative = [norm / expected[0] for norm in expected]
    assert course(read).norms == pytest.approx(relative, rel=1e-4)


@pytest.mark.parametrize("options", [{}, {"residual": True}, {"skip": True}])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_what_is_read_again_is_what_was_read(options: dict[str, Any], bidirectional: bool) -> None:
    """Step by step, each cell of the top layer returns the outputs of the fused kernel."""
    torch.manual_seed(0)
    stack = recurrent_stack(6, 6, num_layers=2, bidirectional=bidirectional, **options)
    outer, inputs = nn.Sequential(stack), torch.randn(3, 5, 6)
    mask = torch.tensor([[True] * 5, [False, True, True, False, True], [True, False, *[False] * 3]])
    with listening(outer) as heard:
        ran = stack(inputs, mask)
    top = [each for each in recurrences(heard, ran.outputs.sum()) if "layer 2" in each.name]
    for each in top:
        part = slice(6, None) if "backward" in each.name else slice(None, 6)
        state, order = each.start, [row.nonzero().flatten() for row in mask]
        for t, x in enumerate(each.inputs.unbind(1)):
            state = each.cell(x, state)
            for row in range(3):
                places = order[row].flip(0) if "backward" in each.name else order[row]
                if t < len(places) and not stack.residual:
                    expected = ran.outputs[row, places[t], part]
                    assert torch.allclose(state.hidden[row], expected, atol=1e-6)
    assert len(top) == 1 + bidirectional
    assert all(each.gradient is not None for each in top)


def test_saturated_gates_and_dead_units_are_counted() -> None:
    task = built(writing(SoftmaxSpec()))
    (cell,) = task.model.decoder.stack.cells_in_order()
    batch = batch_of(task, LETTERS)
    assert value(task, batch, "gates_saturated/decoder") < 0.05
    assert value(task, batch, "units_dead/decoder") == 0
    with torch.no_grad():
        cell.weights.input_bias[: 4 * cell.output_size] = 20.0  # all gates open
    assert value(task, batch, "gates_saturated/decoder") == 1
    found = diagnosed(task, batch)
    assert "gate saturation" in found
    with torch.no_grad():
        cell.weights.input_bias[3 * cell.output_size :] = -20.0  # all outputs are zero
    assert value(task, batch, "units_dead/decoder") > 0.9
    assert "dead units" in diagnosed(task, batch)


# attention

ATTENTIONS = {
    "softmax": SoftmaxSpec(),
    "sigmoid": SigmoidSpec(),
    "segment": SegmentSpec(),
    "local": LocalSpec(),
    "sparsemax": SparsemaxSpec(),
    "hard": HardSpec(),
    "multi-head": MultiHeadSpec(num_heads=2),
    "exact hard": LatentHardSpec(),
    "monotone": LatentMonotoneSpec(),
    "none": None,
}


class Pointing(AbstractScorer):
    """Scores one position far above the others for every query."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place

    def remember(self, values: Tensor) -> Any:
        return values

    def forward(self, query: Tensor, keys: Any) -> tuple[Tensor, ...]:
        scores = query.new_zeros(*query.shape[:-1], keys.shape[-2])
        scores[..., self.place] = 50.0
        return (scores,)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_every_attention_can_be_looked_at(name: str) -> None:
    task = built(writing(ATTENTIONS[name]))
    signs = vital_signs(task, batch_of(task, LETTERS))
    assert ("attention/entropy" in signs) == (name != "none")
    for path, value in signs.items():
        if path.startswith("attention/") and not path.endswith("total"):
            assert isinstance(value, float)
            assert 0 <= value <= 1 + 1e-6, path
    assert {path for path in signs if path.startswith("gradient_rate/")} == {
        f"gradient_rate/{part}" for part in ("encoder forward", "encoder backward", "decoder")
    }


def test_dead_attention_is_uniform_and_said_so() -> None:
    task = built(writing(SoftmaxSpec()))
    with torch.no_grad():
        for parameter in task.model.decoder.attention.scorer.parameters():
            parameter.zero_()
    found = diagnosed(task, batch_of(task, LETTERS))
    assert found["uniform attention"].severity == "alarm"
    assert found["uniform attention"].numbers["entropy"] == pytest.approx(1.0, abs=1e-6)
    assert "stuck attention" not in found


@pytest.mark.parametrize(("place", "said"), [(0, "first position"), (1, "one position")])
def test_stuck_attention_is_named_with_its_place(place: int, said: str) -> None:
    task = built(writing(SoftmaxSpec()))
    task.model.decoder.attention.scorer = Pointing(place)
    finding = diagnosed(task, batch_of(task, LETTERS))["stuck attention"]
    assert finding.severity == "alarm"
    assert said in finding.text
    assert finding.numbers["stuck"] == pytest.approx(1.0)


def test_attention_stuck_at_the_last_place() -> None:
    task = built(writing(SoftmaxSpec()))
    task.model.decoder.attention.scorer = Pointing(-1)
    same_length = [example for example in LETTERS if len(example.text) == 5]
    finding = diagnosed(task, batch_of(task, same_length))["stuck attention"]
    assert "last position" in finding.text


# padding


class Blind(AbstractEncoder):
    """An encoder that ignores its mask, or does not pass it on."""

    def __init__(self, inner: AbstractEncoder, *, reads_padding: bool) -> None:
        super().__init__()
        self.inner, self.reads_padding = inner, reads_padding
        self.value_size, self.summary_size = inner.value_size, inner.summary_size

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Memory:
        memory = self.inner(inputs, None if self.reads_padding else mask)
        return memory._replace(mask=None)


@pytest.mark.parametrize(("reads_padding", "name"), [(True, "no mask"), (False, "leaked padding")])
def test_a_model_that_reads_padding_is_found_out(reads_padding: bool, name: str) -> None:
    task = built(writing(SoftmaxSpec()))
    task.model.encoder = Blind(task.model.encoder, reads_padding=reads_padding)
    found = diagnosed(task, batch_of(task, LETTERS))
    assert found[name].severity == "alarm"
    assert len({"no mask", "leaked padding"} & set(found)) == 1


def test_a_classifier_without_its_mask_is_found_out() -> None:
    task = built(ClassificationSpec(), LABELS)
    task.model.encoder = Blind(task.model.encoder, reads_padding=True)
    assert "no mask" in alarms(task, batch_of(task, LABELS))


def test_padding_that_is_marked_as_real_is_found_out() -> None:
    task = built(writing(SoftmaxSpec()))
    batch = batch_of(task, LETTERS)
    assert isinstance(batch, Seq2SeqBatch)
    batch.source_mask.fill_(True)
    finding = diagnosed(task, batch)["leaked padding"]
    assert finding.numbers["marked"] > 0


@pytest.mark.parametrize("name", ["softmax", "input feeding", "classification", "tagging"])
def test_healthy_models_leave_padding_alone(name: str) -> None:
    patient = HEALTHY[name]
    task = built(patient.task, patient.examples)
    batch = batch_of(task, patient.examples)
    assert value(task, batch, "padding/holds") == 0
    assert value(task, batch, "padding/more") < 1e-4
    assert value(task, batch, "padding/marked") == 0
    assert vital_signs(task, batch).get("attention/padding", 0) == 0


# measuring changes nothing


@pytest.mark.parametrize("name", ["softmax", "input feeding", "classification", "language model"])
def test_measuring_changes_nothing(name: str) -> None:
    patient = HEALTHY[name]
    task: Task = built(patient.task, patient.examples)
    batch = batch_of(task, patient.examples)
    task.model.train()
    task.loss(batch).total.backward()
    tensors = {**dict(task.model.named_parameters()), **dict(task.model.named_buffers())}
    before = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    gradients = {n: p.grad.clone() for n, p in task.model.named_parameters() if p.grad is not None}
    state = torch.random.get_rng_state()
    signs = vital_signs(task, batch)
    assert all(math.isfinite(value) for value in signs.values() if not isinstance(value, list))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert task.model.training
    for key, tensor in tensors.items():
        assert torch.equal(tensor, before[key])
        if key in gradients:
            assert tensor.grad is not None
            assert torch.equal(tensor.grad, gradients[key])
    hooks = [module for module in task.model.modules() if module._forward_hooks]
    assert hooks == []


def test_vital_signs_are_the_same_twice() -> None:
    task: Transduction = built(writing(HardSpec()))
    batch = batch_of(task, LETTERS)
    assert vital_signs(task, batch) == vital_signs(task, batch)
