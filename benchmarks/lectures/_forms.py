"""Quality and cost of several forms of a model on several corpora.

For each corpus and form: the metric of the test set, mean over seeds with the lowest and the highest, parameters,
CPU minutes of training, and examples per second of beam search on one thread; and the difference to the baseline form,
with the interval of the paired bootstrap over examples.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.datasets import data_folder
from foveal.metrics import Statistics, bleu, compare
from foveal.metrics._metrics import wrong_words
from foveal.tasks import Transduction
from foveal.training import Run

from ..records._fitting import Cost, fitted
from ..records._scoring import source_files
from ..results import Row, digests
from ._comparison import mean_row, mean_statistics, spec_of, update


class Scored(NamedTuple):
    """The test results of one form on one corpus, in the order of the seeds."""

    quality: Sequence[Statistics]
    parameters: int
    costs: Sequence[Cost]
    speed: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Forms:
    """An experiment whose cases are named `corpus_form`."""

    name: str
    recipe: Callable[[str], Run]
    corpora: Collection[str]
    forms: Collection[str]
    baseline: str
    # Corpora scored by BLEU; the others count words with any error.
    of_sentences: Collection[str] = ()

    def score(self, cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
        """Write the figures of the cases that were fitted with all seeds into results/NAME.json."""
        rows, specs, files = list[Row](), dict[str, object](), list[Path]()
        for corpus in self.corpora:
            found = dict[str, Scored]()
            for form in self.forms:
                case = f"{corpus}_{form}"
                folders = fitted(runs, self.name, case, seeds)
                if case not in cases or not folders:
                    continue
                run = self.recipe(case)
                assert run.test is not None
                found[form] = self._scored(corpus, list[Example](run.test), folders)
                specs[case] = spec_of(run)
                files += [
                    file for part in (run.train, run.dev, run.test) for file in source_files(part)
                ]
                print(case, [round(each.value, 2) for each in found[form].quality], flush=True)
            rows += self._rows(corpus, found, seeds)
        data = digests(sorted(set(files)), data_folder())
        update(results / f"{self.name}.json", self.name, rows, data=data, spec=specs)

    def _scored(self, corpus: str, examples: Sequence[Example], folders: Sequence[Path]) -> Scored:
        references = [example.target or "" for example in examples]
        quality, seconds, parameters = list[Statistics](), list[float](), 0
        for folder in folders:
            task = load_bundle(folder)
            assert isinstance(task, Transduction)
            began = time.perf_counter()
            outputs = [answer.output for answer in task.predict(examples)]
            seconds.append(time.perf_counter() - began)
            if corpus in self.of_sentences:
                quality.append(bleu(references, outputs, tokenize="none"))
            else:
                quality.append(wrong_words(references, outputs))
            parameters = sum(weights.numel() for weights in task.model.parameters())
        costs = [Cost.load(folder) for folder in folders]
        return Scored(quality, parameters, costs, len(examples) / min(seconds))

    def _rows(
        self, corpus: str, found: Mapping[str, Scored], seeds: Sequence[int]
    ) -> Iterator[Row]:
        """Yield the figures of a corpus; the table has the text before the colon in its rows."""
        unit, metric = ("BLEU", "BLEU") if corpus in self.of_sentences else ("%", "WER")
        for form, scored in found.items():
            name = f"{corpus}, {form}"
            yield mean_row(
                f"{name}: {metric}", [each.value for each in scored.quality], unit, seeds
            )
            if form != self.baseline and self.baseline in found:
                first, second = (
                    mean_statistics(found[each].quality) for each in (self.baseline, form)
                )
                compared = compare(first, second)
                yield Row(
                    name=f"{name}: difference to {self.baseline}",
                    value=compared.difference,
                    unit=unit,
                    spread=(compared.low, compared.high),
                    seeds=tuple(seeds),
                )
            yield Row(
                name=f"{name}: parameters", value=scored.parameters, unit="", seeds=tuple(seeds)
            )
            minutes = [cost.processor_minutes for cost in scored.costs]
            yield mean_row(f"{name}: CPU minutes", minutes, "min", seeds)
            if self.baseline in found:
                base = mean(cost.processor_minutes for cost in found[self.baseline].costs)
                yield Row(
                    name=f"{name}: cost", value=mean(minutes) / base, unit="x", seeds=tuple(seeds)
                )
            yield Row(
                name=f"{name}: examples/s", value=scored.speed, unit="1/s", seeds=tuple(seeds)
            )
