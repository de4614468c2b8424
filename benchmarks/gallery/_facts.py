"""Questions about stories: a chain of two facts (Kim et al. 2017, section 4.3).

bAbI, task 2: to find an object, the model needs to know who has it and where that person went. The data
marks the facts that support an answer; the model does not see these marks. Questions after more than 20
facts are left out of training and test. The gallery shows the first question of the test file.
"""

import random
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import nll_loss, one_hot

from examples.support import DATA
from examples.support.texts import Descent
from foveal.attention import AttentionTrace, Layout
from foveal.data import Example, Facts, Vocabulary, babi
from foveal.data._example import read_alignment
from foveal.data.vocabularies._vocabulary import Labels
from foveal.models import ChainStepsSpec, MemoryNetwork, MemoryNetworkSpec
from foveal.models._memory_network import Answered
from foveal.specs import to_data

from ..results import Results, digest
from ._exhibit import Budget, Exhibit, Shown, Stopwatch, rounded, share_row

ARCHIVE = "babi_v1-2/en-10k.tar.gz"
MEMBER = "en-10k/qa2_two-supporting-facts_{}.txt"
MOST_FACTS = 20
UPDATES, BATCH, RATE = 5000, 64, 5e-3


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A story, a question, its answer, and its supporting facts."""

    facts: tuple[str, ...]
    question: str
    answer: str
    support: frozenset[int]


class Asked(NamedTuple):
    """A batch of questions."""

    facts: Tensor  # (B, n, w)
    facts_mask: Tensor
    question: Tensor  # (B, v)
    question_mask: Tensor
    answers: Tensor  # (B,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Coder:
    """The words and the answers of the stories, numbered."""

    words: Vocabulary
    answers: Labels

    @classmethod
    def count(cls, questions: Sequence[Question]) -> "Coder":
        """Collect all words and answers of these questions."""
        texts = (words_of(text) for each in questions for text in (*each.facts, each.question))
        answers = tuple(sorted({each.answer for each in questions}))
        return cls(words=Vocabulary.count(texts), answers=Labels(answers))

    def collate(self, questions: Sequence[Question]) -> Asked:
        """Build a batch, padded on the right in every axis."""
        facts = [[self._encode(fact) for fact in each.facts] for each in questions]
        asked = [self._encode(each.question) for each in questions]
        most = max(map(len, facts))
        width = max(len(words) for rows in facts for words in rows)
        filled = torch.zeros(len(facts), most, width, dtype=torch.long)
        for item, rows in enumerate(facts):
            for place, words in enumerate(rows):
                filled[item, place, : len(words)] = torch.tensor(words)
        question = torch.zeros(len(asked), max(map(len, asked)), dtype=torch.long)
        for item, words in enumerate(asked):
            question[item, : len(words)] = torch.tensor(words)
        answers = torch.tensor([self.answers.number(each.answer) for each in questions])
        return Asked(filled, filled > 0, question, question > 0, answers)

    def _encode(self, text: str) -> list[int]:
        return self.words.encode(words_of(text))


def words_of(text: str) -> list[str]:
    """Split into words, without the full stop or question mark."""
    return text.lower().rstrip(".?").split()


def as_question(example: Example) -> Question:
    """Split an example into facts, question and answer."""
    source = example.input_as(Facts)
    support = frozenset(read_alignment(example)[::2])
    return Question(
        facts=source.facts, question=source.question, answer=example.target or "", support=support
    )


def read_questions() -> tuple[list[Question], list[Question]]:
    """Read the training set and the test set."""
    parts = list[list[Question]]()
    with (
        tempfile.TemporaryDirectory(prefix="gallery") as folder,
        tarfile.open(DATA / ARCHIVE) as tar,
    ):
        for part in ("train", "test"):
            content = tar.extractfile(MEMBER.format(part))
            assert content is not None
            file = Path(folder) / f"{part}.txt"
            file.write_bytes(content.read())
            every = map(as_question, babi(file))
            parts.append([each for each in every if len(each.facts) <= MOST_FACTS])
    return parts[0], parts[1]


def spec() -> MemoryNetworkSpec:
    """One chain of two facts."""
    return MemoryNetworkSpec(
        embedding_size=32,
        num_steps=2,
        steps=ChainStepsSpec(),
        max_facts=MOST_FACTS,
    )


def facts(budget: Budget) -> Exhibit:
    """Train, test, and follow the chain of one question."""
    watch, (known, unseen) = Stopwatch(), read_questions()
    torch.manual_seed(budget.seed)
    coder = Coder.count(known)
    model = spec().build(vocabulary=len(coder.words), num_answers=len(coder.answers))
    steps = budget.steps(UPDATES)
    descent = Descent(model, learning_rate=RATE, num_steps=steps)
    for batch, _ in zip(_batches(coder, known, budget.seed), range(steps), strict=False):
        descent.step(nll_loss(_answer(model, batch).log_probs, batch.answers))
    model.eval()
    right, found = list[bool](), list[bool]()
    for start in range(0, len(unseen), 200):
        some = unseen[start : start + 200]
        answered = _answer(model, coder.collate(some))
        chosen = [coder.answers.names[n] for n in answered.log_probs.argmax(-1).tolist()]
        right += [name == each.answer for name, each in zip(chosen, some, strict=True)]
        chains = answered.facts().tolist()
        found += [set(chain) == each.support for chain, each in zip(chains, some, strict=True)]
    rows = [
        share_row("test questions answered right", right, budget.seed),
        share_row("most probable chain has the supporting facts", found, budget.seed),
        watch.row(budget.seed),
    ]
    training = {"questions": len(known), "updates": steps, "batch": BATCH, "learning rate": RATE}
    results = Results.here("python -m benchmarks.gallery --cases facts").with_rows(rows)
    return Exhibit(
        results=replace(
            results,
            data={ARCHIVE: digest(DATA / ARCHIVE)},
            spec={"model": to_data(spec()), "training": training},
        ),
        shown=_look(model, coder, unseen[0]),
    )


def _look(model: MemoryNetwork, coder: Coder, question: Question) -> Shown:
    answered = _answer(model, coder.collate([question]))
    probability, answer = answered.log_probs[0].exp().max(-1)
    chain = answered.facts()[0]
    return Shown(
        facts={
            "input": question.question,
            "output": coder.answers.names[int(answer)],
            "reference": question.answer,
            "probability": round(float(probability), 4),
            "support": [question.facts[place] for place in sorted(question.support)],
            "chain": [question.facts[place] for place in chain.tolist()],
        },
        trace=AttentionTrace(
            kind="k-step",
            sources=question.facts,
            targets=("step 1", "step 2"),
            weights=rounded(answered.weights[0]),
            layout=Layout("facts", rows=len(question.facts)),
            best=tuple(map(tuple, one_hot(chain, len(question.facts)).bool().tolist())),
        ),
    )


def _answer(model: MemoryNetwork, batch: Asked) -> Answered:
    with torch.set_grad_enabled(model.training):
        return model(batch.facts, batch.facts_mask, batch.question, batch.question_mask)


def _batches(coder: Coder, questions: Sequence[Question], seed: int) -> Iterator[Asked]:
    """Yield batches of stories of similar length, in random order, forever."""
    chance = random.Random(seed)
    ordered = sorted(questions, key=lambda each: len(each.facts))
    collated = [
        coder.collate(ordered[start : start + BATCH]) for start in range(0, len(ordered), BATCH)
    ]
    while True:
        chance.shuffle(collated)
        yield from collated
