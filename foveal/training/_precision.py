"""The precision of a step: float32, or autocast to bfloat16 or float16.

bfloat16 has the range of float32. float16 does not, and small gradients would become 0. So the loss is multiplied by a
scale, and the gradients are divided by it. If a gradient overflows, the optimizer skips the step and the scale is
halved; after 2,000 steps without an overflow, the scale is doubled.

References: Micikevicius et al. 2018.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from ..errors import SpecError
from ._spec import TrainingSpec

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_SCALE, _STEPS = "scale", "growth"
# Less than torch's 2^16: our loss is a sum over tokens, whose gradient is larger than the gradient of a mean.
_FIRST_SCALE = 2.0**10


class Precision:
    """Autocast on a device, and the scale of the loss for float16.

    Args:
        spec: The settings of training.
        device: The device of the model.

    Raises:
        SpecError: float16 is requested on a CPU.
    """

    def __init__(self, spec: TrainingSpec, device: torch.device) -> None:
        if spec.fp16 and device.type == "cpu":
            raise SpecError(
                "TrainingSpec: fp16 needs a GPU, got the device cpu, which cannot compute recurrent layers in "
                "float16. Set fp16=False; bf16=True works on every device."
            )
        self._device = device
        self._kind = "bf16" if spec.bf16 else "fp16" if spec.fp16 else None
        self._scaler = torch.amp.GradScaler(device.type, _FIRST_SCALE) if spec.fp16 else None

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context in which the loss is computed."""
        if self._kind is None:
            return nullcontext()
        return torch.autocast(self._device.type, dtype=_DTYPES[self._kind])

    def scaled(self, total: Tensor) -> Tensor:
        """Return a loss times the scale."""
        return total if self._scaler is None else self._scaler.scale(total)

    def unscale(self, optimizer: torch.optim.Optimizer) -> None:
        """Divide the gradients of an optimizer by the scale, and look for overflows."""
        if self._scaler is not None:
            self._scaler.unscale_(optimizer)

    def update(self, optimizer: torch.optim.Optimizer) -> None:
        """Make the step of an optimizer, unless a gradient overflowed, and update the scale."""
        if self._scaler is None:
            optimizer.step()
        else:
            self._scaler.step(optimizer)
            self._scaler.update()

    def tensors(self) -> dict[str, Tensor]:
        """Return the state that a checkpoint needs."""
        if self._scaler is None:
            return {}
        state = self._scaler.state_dict()
        return {
            _SCALE: torch.tensor(state["scale"]),
            _STEPS: torch.tensor(state["_growth_tracker"]),
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the state that `tensors` returned."""
        if self._scaler is not None and tensors:
            scale, steps = tensors[_SCALE].item(), int(tensors[_STEPS].item())
            state = {**self._scaler.state_dict(), "scale": scale, "_growth_tracker": steps}
            self._scaler.load_state_dict(state)

    def warning(self) -> str | None:
        """Return a warning if the device computes this precision slowly."""
        if self._kind != "bf16" or has_bfloat16(self._device):
            return None
        name = "this CPU" if self._device.type == "cpu" else str(self._device)
        return (
            f"bf16=true, but {name} has no bfloat16 instructions: steps may take twice the time of "
            f"float32. Turn it off: --set training.bf16=false (bf16=False in a recipe)."
        )


def has_bfloat16(device: torch.device) -> bool:
    """Return True if a device supports bfloat16 natively; where torch emulates it, float32 is faster."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return True
    ask = getattr(torch.cpu, "get_capabilities", dict)  # older versions of torch do not have it
    found: dict[str, Any] = ask()
    is_known = found.get("architecture") == "x86_64"
    return not is_known or found["avx512_bf16"] or found["amx_bf16"]
