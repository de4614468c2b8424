"""Load an exported model and answer.

model = load("ice.export")
model.predict("reykjavík").output
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, final, overload

from ._answers import Answer, Source
from ._captions import Captioner
from ._engine import Engine
from ._errors import ExportedModelError
from ._folder import SELF_TEST, Folder, read_folder, read_manifest, verified
from ._labels import Classifier, Tagger
from ._sizes import grouped
from ._task import Search, Task
from ._transduction import Transducer

_BATCH_SIZE = 256
_AT_ONCE = 1024  # inputs in memory
_MOST_SELF_TEST = 64 << 20

Input: TypeAlias = str | bytes | Path | Source

# The class that answers for each task.
TASKS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any], Engine], Task]] = {
    "captioning": Captioner,
    "classification": Classifier,
    "tagging": Tagger,
    "transduction": Transducer,
}


def load(path: str | Path, *, threads: int = 1) -> "Model":
    """Load an exported model.

    Args:
        path: The folder that `foveal export` wrote.
        threads: Number of threads of one run.

    Returns:
        The model, ready to answer.

    Raises:
        ExportedModelError: The folder is damaged, or written by a newer version.
    """
    return Model(read_folder(path), threads=threads)


@final
class Model:
    """An exported model; the answer to an input is the same in every batch.

    Args:
        folder: The verified content of an exported folder.
        threads: Number of threads of one run.

    Raises:
        ExportedModelError: This runtime does not have the task, or a setting is missing.
    """

    def __init__(self, folder: Folder, *, threads: int = 1) -> None:
        self.path, self.settings = folder.path, folder.model
        task = str(folder.model.get("task"))
        if task not in TASKS:
            raise ExportedModelError(
                f"{folder.path}: this runtime cannot run the task {task[:40]!r}, expected one of "
                f"{', '.join(TASKS)}. Install a newer foveal-runtime."
            )
        try:
            self._task = TASKS[task](folder.model, folder.vocabulary, Engine(folder.graph, threads))
        except (KeyError, TypeError) as error:
            raise ExportedModelError(
                f"{folder.path}: model.json or vocabulary.json is incomplete: {error}. Export the model again."
            ) from None

    @overload
    def predict(
        self,
        texts: Input,
        *,
        beam_size: int | None = None,
        nbest: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
        attention: bool = False,
        batch_size: int = _BATCH_SIZE,
    ) -> Answer: ...

    @overload
    def predict(
        self,
        texts: Sequence[Input],
        *,
        beam_size: int | None = None,
        nbest: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
        attention: bool = False,
        batch_size: int = _BATCH_SIZE,
    ) -> list[Answer]: ...

    def predict(
        self,
        texts: Input | Sequence[Input],
        *,
        beam_size: int | None = None,
        nbest: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
        attention: bool = False,
        batch_size: int = _BATCH_SIZE,
    ) -> Answer | list[Answer]:
        """Answer one text or image, or each of several.

        Args:
            texts: A text or a list of them; `Source` for a text with features. An image is the path or the content of
                its file, or a data URL.
            beam_size: Number of hypotheses, or of taggings; defaults to the setting of the model, or to `nbest` if it is larger.
            nbest: Number of candidates of each answer.
            length_penalty: Larger values favor longer outputs.
            max_length: Maximum number of output tokens; follows from the length of the source by default.
            attention: Whether to return the attention.
            batch_size: Number of texts in a run of the graph.

        Returns:
            An answer, or a list of answers in the order of the texts.

        Raises:
            ExportedModelError: A setting is out of range, a text is too long, or an image cannot be read.

        Examples:
            >>> model = load("hin.export")                     # doctest: +SKIP
            >>> model.predict("delhi").output                  # doctest: +SKIP
            'd e l i'
        """
        is_one = isinstance(texts, str | bytes | Path | Source)
        search = self._search(beam_size, nbest, length_penalty, max_length)
        sources, found = [*map(Source.of, [texts] if is_one else texts)], list[Answer]()
        for start in range(0, len(sources), _AT_ONCE):
            some = sources[start : start + _AT_ONCE]
            found += self._answers(some, search, batch_size, attention)
        return found[0] if is_one else found

    def _answers(
        self, sources: Sequence[Source], search: Search, batch_size: int, attention: bool
    ) -> list[Answer]:
        """Answer inputs, in batches of one padded shape."""
        prepared = [self._task.prepared(source, search) for source in sources]
        found = dict[int, Answer]()
        for rows in grouped([self._task.shape(one) for one in prepared], batch_size):
            some = [prepared[row] for row in rows]
            answers = self._task.answer(some, search, attention=attention)
            found.update(zip(rows, answers, strict=True))
        return [found[row] for row in range(len(sources))]

    def encoded(self, source: Source) -> list[int]:
        """Return the token ids of a source, as the graph reads them.

        Args:
            source: A text, and its features.

        Returns:
            The ids, without padding; an image has none.
        """
        return self._task.encoded(self._task.prepared(source, self._task.search))

    def self_test(self) -> int:
        """Answer the examples that were stored at export, and compare.

        Returns:
            The number of examples.

        Raises:
            ExportedModelError: An answer differs: this machine or version computes something else.
        """
        content = verified(self.path, SELF_TEST, read_manifest(self.path), _MOST_SELF_TEST)
        lines = [json.loads(line) for line in content.decode().splitlines()]
        sources = [Source(line["text"], line["features"] or "") for line in lines]
        for line, source, answer in zip(lines, sources, self.predict(sources), strict=True):
            if answer.output != line["outputs"][0]:
                raise ExportedModelError(
                    f"{self.path}: the answer to {source.text!r} is {answer.output!r}, but it was "
                    f"{line['outputs'][0]!r} when the model was exported. Install another version of onnxruntime, or "
                    f"export the model again."
                )
        return len(lines)

    def _search(
        self,
        beam_size: int | None,
        nbest: int | None,
        length_penalty: float | None,
        max_length: int | None,
    ) -> Search:
        search = self._task.search
        if beam_size is None:
            beam_size = max(search.beam_size, nbest or 1)
        search = search._replace(beam_size=beam_size)
        if nbest is not None:
            search = search._replace(nbest=nbest)
        if length_penalty is not None:
            search = search._replace(length_penalty=length_penalty)
        if max_length is not None:
            search = search._replace(max_length=max_length)
        search.check()
        return search
