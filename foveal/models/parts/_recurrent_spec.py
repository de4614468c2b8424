"""Specs of recurrent networks and of their cells."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

from typing_extensions import override

from ...networks import (
    AbstractCell,
    ElmanCell,
    GRUCell,
    LieAccessCell,
    LSTMCell,
    NTMCell,
    RecurrentStack,
    WindowCell,
    recurrent_stack,
)
from ...networks.recurrent._deep import DeepCell
from ...networks.recurrent._textbook import LogisticCell, TextbookGRUCell
from ...specs import AbstractSpec, setting

_CELLS: dict[str, type[AbstractCell]] = {
    "lstm": LSTMCell,
    "gru": GRUCell,
    "elman": ElmanCell,
    "logistic": LogisticCell,
    "textbook_gru": TextbookGRUCell,
}
CellName: TypeAlias = Literal["lstm", "gru", "elman", "logistic", "textbook_gru"]


class AbstractCellSpec(AbstractSpec):
    """A recurrent cell. Derive from it to use a custom cell in every recurrent network."""

    __slots__ = ()

    @abstractmethod
    def build(self, input_size: int, hidden_size: int) -> AbstractCell:
        """Build the cell.

        Args:
            input_size: Width of the input of a step.
            hidden_size: Width of the state.

        Returns:
            A cell with new weights.
        """


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class WindowCellSpec(AbstractCellSpec):
    """A layer that reads the last inputs, and nothing before them: an n-gram network with n = context + 1."""

    kind: Literal["window"] = "window"
    context: int = setting(4, "number of inputs that an output depends on", at_least=1)

    @override
    def build(self, input_size: int, hidden_size: int) -> AbstractCell:
        """Build the cell."""
        return WindowCell(input_size, hidden_size, self.context)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class DeepCellSpec(AbstractCellSpec):
    """A cell with one state and several layers around it (Pascanu et al. 2014)."""

    kind: Literal["deep"] = "deep"
    input_layers: int = setting(0, "layers between the input and the transition", at_least=0)
    transition_layers: int = setting(2, "layers from one state to the next", at_least=1)
    output_layers: int = setting(0, "layers between the state and the output", at_least=0)
    shortcut: bool = setting(True, "the last layer of a transition reads the previous state too")

    @override
    def build(self, input_size: int, hidden_size: int) -> AbstractCell:
        """Build the cell."""
        return DeepCell(
            input_size,
            hidden_size,
            input_layers=self.input_layers,
            transition_layers=self.transition_layers,
            output_layers=self.output_layers,
            shortcut=self.shortcut,
        )


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class NTMCellSpec(AbstractCellSpec):
    """A Neural Turing Machine: an LSTM that reads and writes a memory of rows (Graves et al. 2014)."""

    kind: Literal["ntm"] = "ntm"
    num_rows: int = setting(128, "number of rows, more than a sequence has tokens", at_least=3)
    row_size: int = setting(20, "width of a row", at_least=1)
    num_heads: int = setting(1, "number of read heads, and of write heads", at_least=1)

    @override
    def build(self, input_size: int, hidden_size: int) -> AbstractCell:
        """Build the cell."""
        return NTMCell(input_size, hidden_size, self.num_rows, self.row_size, self.num_heads)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LieAccessCellSpec(AbstractCellSpec):
    """An LSTM that appends to a memory, with keys that move in a plane (Yang and Rush 2017)."""

    kind: Literal["lie_access"] = "lie_access"
    num_rows: int = setting(256, "number of rows; older rows are lost", at_least=1)
    row_size: int = setting(20, "width of a vector in the memory", at_least=1)

    @override
    def build(self, input_size: int, hidden_size: int) -> AbstractCell:
        """Build the cell."""
        return LieAccessCell(input_size, hidden_size, self.num_rows, self.row_size)


CellSpec: TypeAlias = (
    WindowCellSpec | DeepCellSpec | NTMCellSpec | LieAccessCellSpec | AbstractCellSpec
)


@dataclass(frozen=True, kw_only=True, slots=True)
class AbstractRecurrentSpec:
    """The recurrent layers of encoders, decoders and language models."""

    cell: CellName | CellSpec = setting("lstm", "kind of recurrent cell")
    hidden_size: int = setting(256, "width of a layer's state, in each direction", at_least=1)
    num_layers: int = setting(1, "number of recurrent layers", at_least=1)
    residual: bool = setting(False, "residual connections around layers (He et al. 2016)")
    skip: bool = setting(False, "the input goes to every layer (Graves 2013)")
    dropout: float = setting(
        0.3,
        "dropout of the inputs and outputs of each layer",
        at_least=0,
        at_most=1,
    )

    def stack(self, input_size: int, *, bidirectional: bool = False) -> RecurrentStack:
        """Build the layers.

        Args:
            input_size: Width of the input of a step.
            bidirectional: Read the sequence from both ends; the output is then twice as wide.

        Returns:
            Recurrent layers with new weights.
        """
        return recurrent_stack(
            input_size,
            self.hidden_size,
            cell=_CELLS[self.cell] if isinstance(self.cell, str) else self.cell.build,
            num_layers=self.num_layers,
            bidirectional=bidirectional,
            residual=self.residual,
            skip=self.skip,
            dropout=self.dropout,
        )


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class RecurrentSpec(AbstractRecurrentSpec):
    """A separate recurrent network over vectors."""

    kind: Literal["recurrent"] = "recurrent"
    bidirectional: bool = setting(True, "read from both ends")

    def build(self, input_size: int) -> RecurrentStack:
        """Build the layers.

        Args:
            input_size: Width of the vectors that the network reads.

        Returns:
            Recurrent layers with new weights.
        """
        return self.stack(input_size, bidirectional=self.bidirectional)
