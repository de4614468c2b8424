"""The tensors that define a distribution: printing, moving, detaching and indexing."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from ..shapes import flatten_batch

# typing.Self is not used: beartype supports it only in decorated classes.
Fields = TypeVar("Fields", bound="AbstractFields")


@dataclass(frozen=True, eq=False)
class AbstractFields(ABC):
    """A frozen dataclass whose floating-point tensors are scores and whose other tensors are masks."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # `dataclass` does not replace a `__repr__` that the class defines.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = AbstractFields.__repr__

    @property
    @abstractmethod
    def batch_shape(self) -> torch.Size:
        """Return the leading shape that the tensors share."""

    def __repr__(self) -> str:
        """Show the fields, with dtype and shape instead of the entries of a tensor."""
        shown = []
        for field in fields(self):
            value = self.__dict__[field.name]
            if isinstance(value, Tensor):
                dtype = str(value.dtype).removeprefix("torch.")
                value = f"{dtype}{list(value.shape)}"
            shown.append(f"{field.name}={value}")
        devices = sorted({str(tensor.device) for tensor in self._tensors().values()})
        return f"{type(self).__name__}({', '.join(shown)}, device={' and '.join(devices)})"

    def to(self: Fields, *args: Any, **options: Any) -> Fields:
        """Move the distribution to another device or convert it to another dtype.

        A dtype applies to the scores, not to the masks.

        Args:
            *args: Arguments of `torch.Tensor.to`.
            **options: Keyword arguments of `torch.Tensor.to`.

        Returns:
            A distribution of the same class.

        Examples:
            >>> from foveal.distributions import Categorical
            >>> Categorical(torch.zeros(3)).to(torch.float64)
            Categorical(scores=float64[3], mask=None, device=cpu)
        """
        tensors = self._tensors()
        changes: dict[str, Any] = {
            name: tensor.to(*args, **options)
            for name, tensor in tensors.items()
            if tensor.is_floating_point()
        }
        device = next(iter(changes.values())).device
        masks = {name: part.to(device) for name, part in tensors.items() if name not in changes}
        return replace(self, **changes, **masks)

    def detach(self: Fields) -> Fields:
        """Detach the scores from the autograd graph.

        Returns:
            A distribution of the same class.
        """
        changes: dict[str, Any] = {name: part.detach() for name, part in self._tensors().items()}
        return replace(self, **changes)

    def __getitem__(self: Fields, index: Any) -> Fields:
        """Index the batch axes with an integer, a slice, a tensor, or a tuple of them.

        Indexing works as for a tensor of shape `batch_shape`.

        Args:
            index: Index of the batch axes.

        Returns:
            A distribution of the same class.

        Raises:
            IndexError: The distribution has no batch axes, or the index is out of range.

        Examples:
            >>> from foveal.distributions import Categorical
            >>> Categorical(torch.zeros(4, 2, 3))[1:3, 0].batch_shape
            torch.Size([2])
        """
        batch, tensors = self.batch_shape, self._tensors()
        if not batch:
            raise IndexError(
                f"{type(self).__name__}: expected batch axes to index, got a batch shape of (). "
                f"Give the scores a leading axis with unsqueeze(0)."
            )
        device = next(iter(tensors.values())).device
        places = torch.arange(batch.numel(), device=device).reshape(batch)[index]
        changes: dict[str, Any] = {}
        for name, tensor in tensors.items():
            num_event_axes = self._num_event_axes(name)
            if tensor.ndim > num_event_axes:  # otherwise the whole batch shares it
                changes[name] = flatten_batch(tensor, batch, num_event_axes)[places]
        return replace(self, **changes)

    def _tensors(self) -> dict[str, Tensor]:
        values = {field.name: self.__dict__[field.name] for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def _num_event_axes(self, name: str) -> int:
        """Return the number of last axes of a tensor that are not batch axes."""
        tensor = self.__dict__[name]
        # A tensor with more leading axes than any other determines the number of leading axes.
        num_extra = len(self.batch_shape) + 1
        changes: dict[str, Any] = {name: tensor.reshape((1,) * num_extra + tensor.shape)}
        return tensor.ndim + num_extra - len(replace(self, **changes).batch_shape)
