"""`foveal lexicon`: a pronunciation for every word, in the format of a speech engine.

A word that a known lexicon contains gets its pronunciation from there. The model reads all other words; their confidence
tells which of them a person should check.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from ..data import Example, LineReader
from ..data.formats._lexicons import (
    Entry,
    LexiconFormat,
    LexiconWriter,
    Tokens,
    listed,
    read_inventory,
    read_lexicon,
)
from ..errors import SpecError
from ..serving import Predictor
from ..serving._engines import Engine
from ..serving._lexicon_first import own_lexicon
from ..specs._files import specs_in
from ..tasks import PredictionSpec, TransductionSpec
from ._bars import answering_bar
from ._loading import load_predictor
from ._speech import explain_engine, explaining
from ._standard_input import standard_input
from ._threads import use_threads

_AT_ONCE = 4096  # words


def command(
    bundle: Positional[Path],
    files: Positional[tuple[str, ...]] = (),
    /,
    *,
    known: tuple[Path, ...] = (),
    form: Annotated[LexiconFormat, arg(name="format")] = "table",
    nbest: int = 1,
    inventory: Path | None = None,
    check: Path | None = None,
    check_below: float = 0.5,
    others: Annotated[tuple[Path, ...], arg(name="with")] = (),
    with_specs: Path | None = None,
    threads: int | None = None,
    device: str = "auto",
    engine: Engine = "auto",
) -> None:
    """Write a pronunciation lexicon for the words of files or, without files, of the standard input.

    Known lexicons come first, then the lexicon of the model if it has one, and the model pronounces all other words.
    Each word is written once.

    Args:
        bundle: The folder of a model that `foveal fit` trained on words and their pronunciations.
        files: Files with one word per line; other columns are ignored.
        known: Lexicons whose pronunciations are used as they are: tables with two columns, CMUdict, or a lexicon that
            this command wrote.
        form: The format: table, with confidence and origin; cmudict; sherpa, for sherpa-onnx; or kokoro, where each
            character is a token.
        nbest: The number of pronunciations that the model writes for a word, in the formats table and cmudict.
        inventory: A file with the only tokens that a pronunciation may contain: the first column of each line. Known
            pronunciations with other tokens are left out, and the model pronounces the word.
        check: A file to write with the words whose confidence is low, the lowest first.
        check_below: The confidence below which a person should check a word.
        others: Folders of more models, which form an ensemble with the first.
        with_specs: A Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The command runs the file.
        threads: The number of threads that torch uses. Defaults to OMP_NUM_THREADS, or to one per core.
        device: The device to compute on: auto, cpu, cuda, cuda:1 or mps. auto uses a GPU if there is one.
        engine: The software that computes: torch, or onnx for ONNX Runtime, which is faster for single inputs. auto
            uses onnx if it is installed, the model has an export, and both give the same answers to examples of the run.
    """
    use_threads(threads)
    also = specs_in(with_specs)
    predictor, chosen = load_predictor(bundle, others, also, device, engine, lexicon_first=False)
    spec = predictor.spec
    if not isinstance(spec, TransductionSpec):
        raise SpecError(
            f"{bundle}: expected a model that writes a pronunciation for a word, got the task {spec.kind}. Train one "
            f"on a file with two columns: foveal fit words.tsv --out runs/words."
        )
    own = own_lexicon(bundle)
    lexicon = {
        **read_lexicon([] if own is None else [str(own)]),
        **read_lexicon([str(file) for file in known]),
    }
    allowed = None if inventory is None else read_inventory(str(inventory))
    speaker = _Speaker(predictor, spec, lexicon, predictor.settings(nbest=nbest, inventory=allowed))
    explain_engine(chosen)
    writer = LexiconWriter(form)
    counts, doubtful = {"lexicon": 0, "model": 0, "nothing": 0}, list[Entry]()
    words = _words(files)
    with answering_bar(None, is_quiet=not files and sys.stdin.isatty()) as answered:
        while some := list(islice(words, _AT_ONCE)):
            for entries in speaker.entries(some):
                sys.stdout.writelines(f"{line}\n" for line in writer.lines(entries))
                best = next((entry for entry in entries if entry.tokens), entries[0])
                counts[best.origin if best.tokens else "nothing"] += 1
                if best.confidence < check_below:
                    doubtful.append(best)
            sys.stdout.flush()
            answered(len(some))
    _finish(counts, doubtful, check, check_below)


class _Speaker:
    """Finds the pronunciations of words, in a lexicon or with a model."""

    def __init__(
        self,
        predictor: Predictor,
        spec: TransductionSpec,
        known: Mapping[str, list[Tokens]],
        settings: PredictionSpec,
    ) -> None:
        self._predictor, self._known, self._settings = predictor, known, settings
        self._target = spec.target

    def entries(self, words: Sequence[str]) -> Iterator[list[Entry]]:
        """Yield the pronunciations of each word."""
        unknown = [Example(word) for word in words if not self._listed(word)]
        answers = iter(self._predictor.predict(unknown, self._settings))
        for word in words:
            if found := self._listed(word):
                yield [Entry(word, tokens, 1.0, "lexicon") for tokens in found]
                continue
            best = next(answers).nbest[: self._settings.nbest]
            yield [
                Entry(word, tuple(self._target.encode(each.output)), each.probability, "model")
                for each in best
            ]

    def _listed(self, word: str) -> list[Tokens]:
        """Return the known pronunciations of a word that consist of allowed tokens."""
        return listed(self._known, word, self._settings.inventory)


def _words(files: Sequence[str]) -> Iterator[str]:
    """Yield each word of the files once."""
    seen = set[str]()
    for file in files or (None,):
        for line in standard_input() if file is None else LineReader(file):
            word = line.partition("\t")[0].strip()
            if word and word not in seen:
                seen.add(word)
                yield word


def _finish(
    counts: Mapping[str, int], doubtful: Sequence[Entry], check: Path | None, below: float
) -> None:
    """Write the words to check, and say how many words came from where."""
    if check is not None:
        rows = sorted(doubtful, key=lambda entry: entry.confidence)
        lines = (f"{each.word}\t{' '.join(each.tokens)}\t{each.confidence:.4f}\n" for each in rows)
        check.write_text("".join(lines), encoding="utf-8")
    where = f"listed in {check}" if check else "--check FILE lists them"
    left_out = (
        f", {counts['nothing']:,} without a pronunciation and left out" if counts["nothing"] else ""
    )
    explaining(stderr=True).print(
        f"{sum(counts.values()):,} words: {counts['lexicon']:,} from lexicons, {counts['model']:,} from the model"
        f"{left_out}. To check, with a confidence below {below:g}: {len(doubtful):,}{f' ({where})' if doubtful else ''}",
        markup=False,
        soft_wrap=True,
    )
