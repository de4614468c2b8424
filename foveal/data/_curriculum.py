"""Curricula: examples in an order from easy to hard.

    baseline   examples of the hardest stage only
    naive      all stages in turn, from the easiest to the hardest
    mix        a random stage for each example
    combined   for each example, naive or mix with probability 1/2

References: Zaremba and Sutskever 2014 (Learning to execute), section 3; Bengio et al. 2009 (Curriculum learning).
"""

from collections.abc import Iterator
from dataclasses import dataclass
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
    r"""A source that combines several sources, the stages, in an order from easy to hard.

    A curriculum has `size` examples. The strategy chooses the stage of each example:

    - `baseline`: always the last stage.
    - `naive`: all stages in turn, with the same number of examples each.
    - `mix`: a random stage.
    - `combined`: the stage of `naive` or the stage of `mix`, with probability 1/2.

    A stage with too few examples starts again. One epoch is the whole curriculum: train for one epoch, because a second one
    starts again with the easiest stage. A batch contains examples of similar length, so examples are still shuffled, but
    only within a window of `shuffle_size` tokens.

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
    strategy: Strategy = setting("combined", "how to choose the stage of an example")
    size: int = setting(10_000, "number of examples of the curriculum", at_least=1)
    seed: int = setting(1, "random seed of mix and combined", at_least=0)
    shuffle_size: int = setting(
        1 << 13,
        "number of tokens that are shuffled together; a smaller number follows the order more closely",
        at_least=1,
    )

    @property
    @override
    def pool_size(self) -> int:
        return self.shuffle_size

    @override
    def read(self) -> Iterator[Example]:
        if not self.stages:
            raise DataError(
                "CurriculumSpec: expected at least one stage, got none. Pass sources as stages."
            )
        chance = Random(self.seed)
        examples = [self._repeated(number) for number in range(len(self.stages))]
        for number in range(self.size):
            yield next(examples[self._stage(number / self.size, chance)])

    def _stage(self, progress: float, chance: Random) -> int:
        """Return the number of the stage after a fraction of the curriculum."""
        in_turn, drawn = int(progress * len(self.stages)), chance.randrange(len(self.stages))
        is_drawn = chance.random() < 0.5
        match self.strategy:
            case "baseline":
                return len(self.stages) - 1
            case "naive":
                return in_turn
            case "mix":
                return drawn
            case "combined":
                return drawn if is_drawn else in_turn

    def _repeated(self, number: int) -> Iterator[Example]:
        """Yield the examples of a stage again and again. They are read again, because a stage may not fit into memory."""
        is_empty = False
        while not is_empty:
            is_empty = True
            for example in self.stages[number]:
                is_empty = False
                yield example
        raise DataError(
            f"CurriculumSpec: expected at least one example in each stage, got none in stage {number + 1} "
            f"of {len(self.stages)}. Check its files, or remove the stage."
        )

    @override
    def files(self) -> tuple[str, ...]:
        shards = [shard for stage in self.stages for shard in stage.shards()]
        return tuple(dict.fromkeys(file for shard in shards for file in shard.files))
