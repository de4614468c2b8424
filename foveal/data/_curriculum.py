"""Curricula: examples in an order from easy to hard.

    baseline   hard examples only
    naive      each stage in turn, from the easiest to the hardest
    mix        a random stage for each example
    combined   with probability 1/2 as naive, otherwise as mix

Reference: Zaremba and Sutskever 2014, section 5 (Learning to execute); Bengio et al. 2009 (Curriculum learning).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import Literal, final

from typing_extensions import override

from ..errors import DataError
from ..specs import setting
from ._example import Example
from ._source_spec import AbstractSourceSpec
from .formats._opening import SourceSpec

Strategy = Literal["baseline", "naive", "mix", "combined"]


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class CurriculumSpec(AbstractSourceSpec):
    r"""Examples of several stages, from easy to hard, in the order of a strategy.

    One epoch is the whole curriculum, so train for one epoch. Examples are shuffled only with their neighbors.

    Examples:
        >>> from foveal.data import tsv
        >>> import tempfile, pathlib
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> for stage in ("easy", "hard"):
        ...     _ = (folder / f"{stage}.tsv").write_text(f"{stage}\tyes\n")
        >>> stages = (tsv(folder / "easy.tsv"), tsv(folder / "hard.tsv"))
        >>> [example.text for example in CurriculumSpec(stages=stages, strategy="naive", size=4)]
        ['easy', 'easy', 'hard', 'hard']
    """

    kind: Literal["curriculum"] = "curriculum"
    stages: tuple[SourceSpec, ...] = setting(about="the sources of the stages, the easiest first")
    strategy: Strategy = setting("combined", "the order of the stages")
    size: int = setting(10_000, "number of examples of the curriculum", at_least=1)
    seed: int = setting(1, "random seed of mix and combined", at_least=0)
    neighbors: int = setting(
        1 << 16,
        "number of tokens that are shuffled together; fewer follow the order more closely",
        at_least=1,
    )

    @property
    @override
    def pool_size(self) -> int:
        return self.neighbors

    @override
    def read(self) -> Iterator[Example]:
        if not self.stages:
            raise DataError(
                "CurriculumSpec: expected at least one stage, got none. Name the sources in stages."
            )
        chance, examples = Random(self.seed), [cycle(stage) for stage in self.stages]
        for number in range(self.size):
            yield next(examples[self._stage(number / self.size, chance)])

    def _stage(self, progress: float, chance: Random) -> int:
        """Return the stage of the example after this fraction of the curriculum."""
        last = len(self.stages) - 1
        in_turn, drawn = int(progress * len(self.stages)), chance.randint(0, last)
        is_drawn = chance.random() < 0.5
        if self.strategy == "baseline":
            return last
        if self.strategy == "naive":
            return in_turn
        return drawn if self.strategy == "mix" or is_drawn else in_turn

    @override
    def files(self) -> tuple[str, ...]:
        shards = [shard for stage in self.stages for shard in stage.shards()]
        return tuple(dict.fromkeys(file for shard in shards for file in shard.files))
