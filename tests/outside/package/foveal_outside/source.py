"""A user-defined source: cards with a front and a back."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

from foveal.data import AbstractSourceSpec, Example
from foveal.specs import setting


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class CardsSource(AbstractSourceSpec):
    """A file of cards: a line with the front, a line with the back, a line of dashes."""

    kind: Literal["cards"] = "cards"
    path: str = setting(about="file of cards")

    def read(self) -> Iterator[Example]:
        """Read the cards in the order of the file."""
        for card in Path(self.path).read_text(encoding="utf-8").split("---\n"):
            if card:
                front, back = card.splitlines()
                yield Example(front, back)

    def files(self) -> tuple[str, ...]:
        """Return the file, which lets a resumed run detect changes."""
        return (self.path,)
