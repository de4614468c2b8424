"""Pictures of recurrent networks as dynamical systems, drawn when the docs are built: name -> SVG."""

from collections.abc import Callable

import matplotlib as mpl
import torch
from docs_pictures import INK, RED, STYLE, svg
from docs_unrolled import unrolled
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn import Linear
from torch.nn.functional import cross_entropy, one_hot

from foveal.datasets import sample
from foveal.inspection import gradient_profile, phase_portrait
from foveal.networks import AbstractCell, ElmanCell, GRUCell, LSTMCell, initialize_orthogonal
from foveal.views import curves

NUM_STEPS = 15
CLIFF_TARGET = 0.7
CLIP = 0.1


def gradient_by_cell() -> str:
    """Gradient norms by distance, for five cells with fresh weights on random inputs."""
    torch.manual_seed(0)
    inputs = 0.3 * torch.randn(8, 100, 16, dtype=torch.float64)  # float32 ends at 1e-38
    orthogonal, identity = ElmanCell(16, 64), ElmanCell(16, 64)
    initialize_orthogonal(orthogonal)
    with torch.no_grad():
        torch.nn.init.eye_(identity.weights.hidden)
    cells: dict[str, AbstractCell] = {
        "Elman, torch's default": ElmanCell(16, 64),
        "Elman, orthogonal": orthogonal,
        "Elman, identity": identity,
        "GRU": GRUCell(16, 64),
        "LSTM": LSTMCell(16, 64),
    }
    return curves(
        [gradient_profile(cell.double(), inputs).series(name) for name, cell in cells.items()],
        title="Gradient norm by distance, before training",
        x_label="distance from the end",
        y_label="log10 of the gradient norm",
    )


def iterated_map() -> str:
    """The map 3.5 x (1 - x), applied one to six times."""
    start = torch.linspace(0, 1, 2001, dtype=torch.float64)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.0, 1.9), layout="constrained")
        for place, times in enumerate((1, 2, 3, 6), start=1):
            axes, value = figure.add_subplot(1, 4, place), start
            for _ in range(times):
                value = 3.5 * value * (1 - value)
            axes.plot(start.numpy(), value.numpy(), color=INK, linewidth=1)
            axes.set_title("once" if times == 1 else f"{times} times", fontsize=9)
            axes.set_xticks([0, 0.5, 1])
            axes.set_yticks([0, 0.5, 1])
        return svg(figure)


def attractors() -> str:
    """The flow of a network with two units and two attractors."""
    weights = torch.tensor([[1.5, 0.7], [0.2, 1.1]])
    return phase_portrait(lambda states: torch.tanh(states @ weights), num_steps=10)._repr_svg_()


def _loss(weight: Tensor, bias: Tensor) -> Tensor:
    """The squared error of the last state of one logistic unit (Pascanu et al. 2013, figure 6)."""
    state = torch.full_like(weight, 0.5)
    for _ in range(NUM_STEPS):
        state = torch.sigmoid(weight * state + bias)
    return (state - CLIFF_TARGET) ** 2


def _descent(clip: float | None, steps: int = 60, rate: float = 2.0) -> list[list[float]]:
    """The weights and biases that gradient descent visits."""
    place = torch.tensor([6.2, -2.72], dtype=torch.float64, requires_grad=True)
    visited = [place.tolist()]
    for _ in range(steps):
        (gradient,) = torch.autograd.grad(_loss(place[0], place[1]), place)
        if clip is not None:
            gradient = gradient * min(1.0, clip / float(gradient.norm()))
        place = (place - rate * gradient).detach().requires_grad_()
        visited.append(place.tolist())
    return visited


def cliff() -> str:
    """The loss of one unit over its weight and bias, and two descents from the same start."""
    across = torch.linspace(3.5, 7.5, 321, dtype=torch.float64)
    up = torch.linspace(-6.0, -1.0, 321, dtype=torch.float64)
    weight, bias = torch.meshgrid(across, up, indexing="xy")
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.6, 3.2), layout="constrained")
        axes = figure.add_subplot()
        shades = axes.contourf(across, up, _loss(weight, bias), levels=20, cmap="Blues")
        figure.colorbar(shades, ax=axes, label="loss")
        for clip, color, dashes, marker in ((None, RED, "--", "s"), (CLIP, "black", "-", "o")):
            xs, ys = zip(*_descent(clip), strict=True)
            label = "without clipping" if clip is None else f"norm clipped to {clip}"
            axes.plot(
                xs, ys, dashes, color=color, marker=marker, markersize=3, linewidth=1, label=label
            )
        axes.set(xlabel="recurrent weight", ylabel="bias", xlim=(3.5, 7.5), ylim=(-6.0, -1.0))
        axes.legend(fontsize=8, loc="upper right")
        return svg(figure)


def _losses(clip: float | None, steps: int = 260, rate: float = 2.0) -> list[float]:
    """The loss of a character language model by update of plain gradient descent."""
    torch.manual_seed(0)
    text = (sample("text") / "train.txt").read_text(encoding="utf-8")[:20_000].lower()
    characters = sorted(set(text))
    tokens = torch.tensor([characters.index(character) for character in text])
    cell, output = ElmanCell(len(characters), 64), Linear(64, len(characters))
    weights = [*cell.parameters(), *output.parameters()]
    found = list[float]()
    for _ in range(steps):
        starts = torch.randint(len(tokens) - 41, (8,)).unsqueeze(-1)
        rows = tokens[starts + torch.arange(41)]
        states = cell.run(one_hot(rows[:, :-1], len(characters)).float(), cell.start([8])).outputs
        loss = cross_entropy(output(states).flatten(0, 1), rows[:, 1:].flatten())
        gradients = torch.autograd.grad(loss, weights)
        norm = float(torch.stack([gradient.norm() for gradient in gradients]).norm())
        factor = rate if clip is None else rate * min(1.0, clip / norm)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.sub_(factor * gradient)
        found.append(loss.item())
    return found


def loss_jumps() -> str:
    """The loss of a language model with and without clipping, on a logarithmic axis."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.6, 2.6), layout="constrained")
        axes = figure.add_subplot()
        for clip, color, dashes in ((None, RED, "--"), (0.5, INK, "-")):
            label = "without clipping" if clip is None else f"norm clipped to {clip}"
            axes.plot(_losses(clip), dashes, color=color, linewidth=1, label=label)
        axes.set_yscale("log")
        axes.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
        axes.minorticks_off()
        axes.set(xlabel="update", ylabel="loss per character")
        axes.legend(fontsize=8, loc="upper left")
        return svg(figure)


DYNAMICS: dict[str, Callable[[], str]] = {
    "unrolled": unrolled,
    "gradient_by_cell": gradient_by_cell,
    "iterated_map": iterated_map,
    "attractors": attractors,
    "cliff": cliff,
    "loss_jumps": loss_jumps,
}
