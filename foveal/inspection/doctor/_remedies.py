"""Remedies: the flags that help, written as `foveal fit` takes them.

A remedy names a setting only if the run has it, because tasks consist of different parts.
"""

from typing import Any, NamedTuple, final

from ...specs import settings
from ...training import TrainingSpec


class Flag(NamedTuple):
    """A setting and the value to give it."""

    path: str
    value: str

    def __str__(self) -> str:
        return f"--set {self.path}={self.value}"


@final
class Remedies:
    """The remedies that a run's settings offer.

    Args:
        task: The spec of the task.
        training: The training settings; the defaults if they are unknown.
    """

    def __init__(self, task: Any, training: TrainingSpec | None = None) -> None:
        self.training = training or TrainingSpec(steps=1)
        known = {setting.path.removeprefix("model."): setting for setting in settings(task)}
        self._task = {path: setting.value for path, setting in known.items()}
        self._paths = {path: f"task.{setting.path}" for path, setting in known.items()}

    def vanishing(self, part: str, *, gated: bool) -> str:
        """Suggest a gated cell, or a path around the recurrence."""
        ways = [
            None if gated else self._cell(part, "lstm"),
            self._of_task("decoder.attention", "softmax") if self._lacks_attention else None,
            self._of_task("pooling", "softmax") if self._task.get("pooling") == "summary" else None,
            self._of_task("encoder.self_attention", "softmax") if "encoder" in part else None,
        ]
        return self._either(*ways) or self._wider(part)

    def exploding(self, part: str) -> str:
        """Suggest shorter gradients, smaller steps, or a cell with an additive memory."""
        limit = self.training.clip_norm
        clip = Flag("training.clip_norm", "1" if limit is None else f"{limit / 2:g}")
        return self._either(clip, self._rate(3.0), self._cell(part, "lstm"))

    def slower(self, factor: float = 3.0) -> str:
        """Suggest a lower learning rate."""
        return str(self._rate(factor))

    def warmer(self, factor: float) -> str:
        """Suggest a lower learning rate or a longer warmup."""
        steps = max(100, 4 * self.training.warmup_steps)
        return self._either(self._rate(factor), Flag("training.warmup_steps", str(steps)))

    def narrower(self, part: str) -> str:
        """Suggest fewer units in a part of the model."""
        path, size = self._width(part)
        return str(Flag(path, str(max(1, size // 2))))

    def attention(self) -> str:
        """Suggest a decoder that sees the source only through attention, or another score function."""
        bridge = self._of_task("decoder.bridge", "none")
        rate = self._rate(1 / 3)
        return self._either(bridge, rate) if bridge is not None else str(rate)

    def regularized(self) -> str:
        """Suggest regularization against memorizing the training set."""
        dropout = next((path for path in self._task if path.endswith("dropout")), None)
        more = min(0.5, 0.2 + float(self._task[dropout])) if dropout is not None else 0.0
        return self._either(
            None if dropout is None else self._of_task(dropout, f"{more:g}"),
            Flag("training.weight_decay", "0.01"),
            Flag("training.patience", "5"),
        )

    def stopping(self) -> str:
        """Suggest early stopping."""
        return str(Flag("training.patience", "5"))

    def faster(self) -> str:
        """Suggest a higher learning rate or a wider model."""
        return str(self._rate(1 / 3))

    def looser(self, norm: float) -> str:
        """Suggest a higher clipping threshold, which clips only exceptional gradients."""
        return self._either(Flag("training.clip_norm", f"{2 * norm:.2g}"), self._rate(3.0))

    def scheduled_sampling(self) -> str:
        """Suggest training on the decoder's own predictions."""
        return str(Flag("training.scheduled_sampling", "0.25"))

    def longer(self) -> str:
        """Suggest a search that does not favor short outputs."""
        return str(self._of_task("prediction.length_penalty", "1") or self._rate(3.0))

    def fed(self) -> str:
        """Suggest input feeding: a decoder that knows its previous attention."""
        can_feed = not self._lacks_attention and self._task.get("decoder.attend") != "before"
        feeding = self._of_task("decoder.input_feeding", "true") if can_feed else None
        return self._either(feeding, Flag("training.scheduled_sampling", "0.25"))

    @property
    def _lacks_attention(self) -> bool:
        return self._task.get("decoder.attention", "") is None

    def _wider(self, part: str) -> str:
        path, size = self._width(part)
        return str(Flag(path, str(2 * size)))

    def _width(self, part: str) -> tuple[str, int]:
        path = self._path(part, "hidden_size")
        return self._paths[path], int(self._task[path])

    def _rate(self, factor: float) -> Flag:
        return Flag("training.learning_rate", f"{self.training.learning_rate / factor:.2g}")

    def _cell(self, part: str, value: str) -> Flag | None:
        path = self._path(part, "cell")
        known = self._task.get(path)
        return Flag(self._paths[path], value) if known not in (None, value) else None

    def _path(self, part: str, name: str) -> str:
        """Return the settings path of a part such as `encoder backward`: its own group, the model's group, or a
        part within the group, such as the sentences of a document.
        """
        group = part.split(" ", maxsplit=1)[0].partition(".")[0]
        within = [path for path in self._task if path.endswith(f".{name}")]
        known = (path for path in (f"{group}.{name}", name, *within) if path in self._task)
        return next(known, name)

    def _of_task(self, path: str, value: str) -> Flag | None:
        if path not in self._task or str(self._task[path]).lower() == value:
            return None
        return Flag(self._paths[path], value)

    @staticmethod
    def _either(*flags: Flag | None) -> str:
        return ", or ".join(str(flag) for flag in flags if flag is not None)
