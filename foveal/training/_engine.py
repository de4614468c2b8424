"""One update of the weights, and all state that is kept between updates.

A step depends only on the weights, the optimizer state, the batches and the step number. Each step seeds torch's
generator with (seed, process, step), which determines dropout and sampling. A resumed run therefore needs no generator
state, and work between two steps, such as a validation, does not change the run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..devices import seed_device
from ..errors import CheckpointError
from ..tasks.base._prediction import Loss
from ._average import Average, overwrite
from ._gradients import Gradients, Reduced
from ._group import Group
from ._precision import Precision
from ._spec import TrainingSpec

_WEIGHTS, _OPTIMISER, _MEAN, _PRECISION = "weights.", "optimizer.", "mean.", "precision."


class Engine:
    """A model, its optimizer and the moving average of its weights."""

    def __init__(
        self, model: nn.Module, spec: TrainingSpec, group: Group, num_signals: int
    ) -> None:
        self._model, self._spec, self._group = model, spec, group
        trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self._trained = trained
        self._device = next(model.parameters()).device
        self._precision = Precision(spec, self._device)
        self._optimizer = _optimizer(list(trained.values()), spec)
        self._gradients = Gradients(list(trained.values()), group, num_signals)
        self._average = Average(trained, spec.ema_decay) if spec.ema_decay else None
        group.copy_first(list(self._weights().values()))

    @property
    def num_parameters(self) -> int:
        """The number of trainable parameters."""
        return sum(parameter.numel() for parameter in self._trained.values())

    @property
    def warning(self) -> str | None:
        """A warning about the precision, if the device computes it slowly."""
        return self._precision.warning()

    def step(
        self,
        loss_of: Callable[[Any, Any], Loss],
        batches: Sequence[Any],
        state: Any,
        *,
        number: int,
        rate: float,
        signals: Sequence[float],
    ) -> tuple[Reduced, Any]:
        """Update the weights with the gradient of the mean loss over some batches.

        Args:
            loss_of: A function from a batch and the state after the previous batch to the summed loss and the count.
            batches: The batches of this process; more than one if gradients are accumulated.
            state: The recurrent state after the previous step for running text; otherwise None.
            number: The number of the step, from 1.
            rate: The learning rate.
            signals: See `Gradients`.

        Returns:
            The reduced loss and gradient norm, and the state after the last batch.
        """
        seed_device(self._device, _mixed(self._spec.seed, self._group.rank, number))
        self._optimizer.zero_grad(set_to_none=True)
        totals, counts, parts = [], [], []
        for batch in batches:
            with self._precision.autocast():
                loss = loss_of(batch, state)
            self._precision.scaled(loss.total).backward()
            state = loss.state
            totals.append(loss.total)
            counts.append(loss.count)
            parts.append(loss.parts)
        count = _sum(counts)
        reduced = self._gradients.finish(
            _sum(totals),
            count,
            clip_norm=self._spec.clip_norm,
            signals=signals,
            unscale=partial(self._precision.unscale, self._optimizer),
        )
        means = {name: _sum([some[name] for some in parts]) / count for name in parts[0]}
        for settings in self._optimizer.param_groups:
            settings["lr"] = rate
        self._precision.update(self._optimizer)
        if self._average is not None:
            self._average.renew(number)
        return reduced._replace(parts=means), state

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Prepare the model for validation, with the averaged weights if there is an average."""
        self._model.eval()
        try:
            with nullcontext() if self._average is None else self._average.in_place():
                yield
        finally:
            self._model.train()

    def best_weights(self) -> dict[str, Tensor]:
        """Return a copy of the weights that validation uses."""
        with self.evaluating():
            return {name: tensor.detach().clone() for name, tensor in self._weights().items()}

    def keep(self, weights: Mapping[str, Tensor]) -> None:
        """Set the weights of the model permanently."""
        _check_names("best", self._weights(), weights)
        overwrite(self._weights(), weights)
        self._model.eval()

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors that a checkpoint needs."""
        found = {_WEIGHTS + name: tensor for name, tensor in self._weights().items()}
        for name, parameter in self._trained.items():
            for key, tensor in self._optimizer.state[parameter].items():
                found[f"{_OPTIMISER}{key}.{name}"] = tensor
        if self._average is not None:
            found |= {_MEAN + name: tensor for name, tensor in self._average.mean.items()}
        found |= {_PRECISION + name: tensor for name, tensor in self._precision.tensors().items()}
        return found

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the state that `tensors` returned."""
        weights = _below(_WEIGHTS, tensors)
        _check_names("weights", self._weights(), weights)
        overwrite(self._weights(), weights)
        self._load_optimizer(_below(_OPTIMISER, tensors))
        self._precision.load(_below(_PRECISION, tensors))
        if self._average is not None:
            mean = _below(_MEAN, tensors)
            _check_names("mean", self._average.mean, mean)
            overwrite(self._average.mean, mean)

    def _load_optimizer(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the optimizer from names as in `tensors`: an optimizer key, which has no dot, and a parameter name."""
        states: dict[str, dict[str, Tensor]] = {name: {} for name in self._trained}
        for full, tensor in tensors.items():
            key, _, name = full.partition(".")
            states.setdefault(name, {})[key] = tensor
        moments = {name: state["exp_avg"] for name, state in states.items() if "exp_avg" in state}
        _check_names("optimizer", self._trained, moments)
        groups = self._optimizer.state_dict()["param_groups"]
        numbered = dict(enumerate(states[name] for name in self._trained))
        self._optimizer.load_state_dict({"state": numbered, "param_groups": groups})

    def _weights(self) -> dict[str, Tensor]:
        """Return the saved parameters and buffers, each once even if modules share it."""
        saved = self._model.state_dict(keep_vars=True)
        own = {**dict(self._model.named_parameters()), **dict(self._model.named_buffers())}
        return {name: tensor for name, tensor in own.items() if name in saved}


def _check_names(what: str, expected: Mapping[str, Tensor], got: Mapping[str, Tensor]) -> None:
    for name in sorted({*expected, *got}):
        sizes = [tuple(side[name].shape) if name in side else None for side in (expected, got)]
        if sizes[0] != sizes[1]:
            raise CheckpointError(
                f"the checkpoint's {what} are from another model: {name} has shape {sizes[1]}, "
                f"expected {sizes[0]} (None: missing). Use another folder, or the spec of the task "
                f"that the folder was started with."
            )


def _optimizer(parameters: list[nn.Parameter], spec: TrainingSpec) -> torch.optim.Optimizer:
    """Build the optimizer. The fused version reads the weights once instead of a dozen times."""
    kind = torch.optim.AdamW if spec.optimizer == "adamw" else torch.optim.Adam
    return kind(
        parameters,
        lr=spec.learning_rate,
        betas=spec.betas,
        eps=spec.epsilon,
        weight_decay=spec.weight_decay,
        fused=True,
    )


def _sum(numbers: Sequence[Tensor]) -> Tensor:
    """Sum as float32: bfloat16 has too few digits for sums of losses."""
    floats = [number.detach().float() for number in numbers]
    return floats[0] if len(floats) == 1 else torch.stack(floats).sum()


def _mixed(*numbers: int) -> int:
    """Hash integers to 32 pseudo-random bits (splitmix64)."""
    mixed = 0
    for number in numbers:
        mixed = (mixed + number + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 31
    return mixed & 0xFFFFFFFF


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
