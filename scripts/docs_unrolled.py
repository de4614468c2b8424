"""A recurrent network, and the same network unrolled over one, two and three steps, as SVG."""

import matplotlib as mpl
from docs_pictures import INK, RED, STYLE, svg
from matplotlib.axes import Axes
from matplotlib.figure import Figure

RADIUS = 0.28  # of a node
LEVELS = {"x": 0.0, "h": 1.0, "y": 2.0}
WEIGHTS = {"x": "W", "h": "V"}  # on the arrow that leaves a node upwards


def unrolled() -> str:
    """The loop of one network on the left; its copies for one, two and three steps with the same weights."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.4, 2.7), layout="constrained")
        panels = figure.subplots(1, 4, width_ratios=(1.5, 2.0, 3.0, 4.0))
        _loop(panels[0])
        titles = ("one step", "two steps", "three steps")
        for num_steps, (axes, title) in enumerate(zip(panels[1:], titles, strict=True), start=1):
            _steps(axes, num_steps, title)
        return svg(figure)


def _loop(axes: Axes) -> None:
    _column(axes, 0.0, "t")
    axes.annotate(
        "",
        xy=(0.05, 1.0 + RADIUS),
        xytext=(0.05, 1.0 - RADIUS),
        arrowprops={"arrowstyle": "->", "connectionstyle": "arc3,rad=1.9", "color": RED},
    )
    axes.text(0.86, 1.0, "U", color=RED, ha="center", va="center")
    _frame(axes, "one network", right=1.0)


def _steps(axes: Axes, num_steps: int, title: str) -> None:
    _node(axes, -1.0, "h", "0")
    for step in range(num_steps):
        _column(axes, float(step), str(step + 1))
        _arrow(axes, (step - 1.0, 1.0), (step, 1.0), RED)
        axes.text(step - 0.5, 1.1, "U", color=RED, ha="center", va="bottom")
    _frame(axes, title, left=-1.45, right=num_steps - 0.5)


def _column(axes: Axes, x: float, step: str) -> None:
    """Draw the input, the state and the output of a step, and the arrows between them."""
    for name, y in LEVELS.items():
        _node(axes, x, name, step)
        if name in WEIGHTS:
            _arrow(axes, (x, y), (x, y + 1.0), INK)
            axes.text(x + 0.1, y + 0.5, WEIGHTS[name], color=INK, ha="left", va="center")


def _node(axes: Axes, x: float, name: str, step: str) -> None:
    style = {"boxstyle": "circle,pad=0.25", "facecolor": "none", "edgecolor": INK}
    axes.text(x, LEVELS[name], f"${name}_{step}$", ha="center", va="center", color=INK, bbox=style)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], color: str) -> None:
    """Draw an arrow between two nodes."""
    (x, y), (u, v) = start, end
    gap_x, gap_y = RADIUS * (u - x), RADIUS * (v - y)
    axes.annotate(
        "",
        xy=(u - gap_x, v - gap_y),
        xytext=(x + gap_x, y + gap_y),
        arrowprops={"arrowstyle": "->", "color": color, "shrinkA": 0, "shrinkB": 0},
    )


def _frame(axes: Axes, title: str, *, left: float = -0.5, right: float) -> None:
    axes.set(xlim=(left, right), ylim=(-0.45, 2.45))
    axes.set_axis_off()
    axes.set_title(title, fontsize=9)
