"""Tiny tasks of every kind, and a plain training loop."""

import random
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch

from foveal.data import Document, Example, InMemory, TextPair
from foveal.models import (
    ClassifierSpec,
    DecoderSpec,
    DecomposableAttentionSpec,
    DocumentEncoderSpec,
    LanguageModelSpec,
    MemoryNetworkSpec,
    RecurrentSpec,
    Seq2SeqSpec,
    SyntacticSpec,
    TaggerSpec,
    TextEncoderSpec,
    WordEncoderSpec,
)
from foveal.tasks import (
    AbstractTask,
    ClassificationSpec,
    LanguageModelingSpec,
    PairClassificationSpec,
    QuestionAnsweringSpec,
    TaggingSpec,
    Transduction,
    TransductionSpec,
)

Task: TypeAlias = AbstractTask[Any]

ENCODER = TextEncoderSpec(embedding_size=12, hidden_size=16, dropout=0.0)
DOCUMENTS = DocumentEncoderSpec(words=ENCODER, sentences=RecurrentSpec(hidden_size=16, dropout=0.0))
HEADED = WordEncoderSpec(
    embedding_size=12,
    dropout=0.0,
    self_attention=SyntacticSpec(),
    states=RecurrentSpec(hidden_size=8, dropout=0.0),
)
DECODER = DecoderSpec(embedding_size=12, hidden_size=24, dropout=0.0)
WORDS = {"the": "DET", "a": "DET", "old": "ADJ", "good": "ADJ", "cat": "NOUN", "ship": "NOUN"}


def upper_cased(size: int, *, letters: str = "abcde", longest: int = 5) -> list[Example]:
    """Return distinct strings of letters, with the uppercase strings as targets."""
    generator = random.Random(0)
    found: dict[str, Example] = {}
    while len(found) < size:
        word = "".join(generator.choices(letters, k=generator.randint(1, longest)))
        found[word] = Example(word, word.upper())
    return list(found.values())


def sentences(size: int) -> list[Example]:
    """Return words and their parts of speech."""
    generator = random.Random(0)
    texts = [generator.choices(list(WORDS), k=generator.randint(1, 6)) for _ in range(size)]
    return [Example(" ".join(text), " ".join(WORDS[word] for word in text)) for text in texts]


def opinions(size: int) -> list[Example]:
    """Return sentences, labeled by whether they contain "good"."""
    return [
        Example(example.text, "yes" if "good" in example.text else "no")
        for example in sentences(size)
    ]


def stories(size: int) -> list[Example]:
    """Return stories about people who move; the last fact about a person answers the question."""
    generator, found = random.Random(0), list[Example]()
    for _ in range(size):
        who = generator.choices(["Ann", "Bob", "Eve"], k=generator.randint(2, 5))
        where = generator.choices(["hall", "barn", "shop"], k=len(who))
        asked = generator.choice(who)
        last = max(n for n, name in enumerate(who) if name == asked)
        facts = [f"{name} went to the {place}." for name, place in zip(who, where, strict=True)]
        story = "\n".join([*facts, f"Where is {asked}?"])
        found.append(Example(story, where[last], alignment=f"{last}-0"))
    return found


def documents(size: int) -> list[Example]:
    """Return sentences on lines, labeled by whether any contains "good"."""
    texts = [example.text for example in sentences(3 * size)]
    rows = [Document(tuple(texts[start : start + 3])) for start in range(0, len(texts), 3)]
    return [Example(row, "yes" if "good" in str(row) else "no") for row in rows]


def pairs(size: int) -> list[Example]:
    """Return two texts, labeled by whether the first contains all words of the second."""
    generator = random.Random(0)
    found = list[Example]()
    for _ in range(size):
        first = generator.choices(list(WORDS), k=generator.randint(2, 5))
        second = generator.choices(first if generator.random() < 0.5 else list(WORDS), k=2)
        label = "yes" if set(second) <= set(first) else "no"
        found.append(Example(TextPair(" ".join(first), " ".join(second)), label))
    return found


def transduction(*, decoder: DecoderSpec = DECODER, **changes: Any) -> Transduction:
    model = Seq2SeqSpec(encoder=ENCODER, decoder=decoder)
    return TransductionSpec(model=model, **changes).build_from(upper_cased(200))


def tasks() -> dict[str, Task]:
    """Build one task of every kind, with weights from a fixed seed."""
    torch.manual_seed(0)
    return {
        "transduction": transduction(),
        "classification": ClassificationSpec(model=ClassifierSpec(encoder=ENCODER)).build_from(
            opinions(60)
        ),
        "documents": ClassificationSpec(model=ClassifierSpec(encoder=DOCUMENTS)).build_from(
            documents(60)
        ),
        "pair_classification": PairClassificationSpec(
            model=DecomposableAttentionSpec(encoder=HEADED, hidden_size=16)
        ).build_from(pairs(60)),
        "tagging": TaggingSpec(model=TaggerSpec(encoder=ENCODER)).build_from(sentences(60)),
        "language_modeling": LanguageModelingSpec(
            model=LanguageModelSpec(embedding_size=12, hidden_size=24, dropout=0.0),
            bptt_length=10,
            max_length=8,
        ).build_from(upper_cased(60)),
        "question_answering": QuestionAnsweringSpec(
            model=MemoryNetworkSpec(embedding_size=12, num_steps=1, max_facts=6)
        ).build_from(stories(60)),
    }


def train(
    task: Task,
    examples: Sequence[Example],
    *,
    epochs: int,
    rate: float = 5e-3,
    batch_size: int = 20,
) -> list[float]:
    """Train a task, and return the loss of each epoch."""
    task.model.train()
    optimizer = torch.optim.Adam(task.model.parameters(), rate)
    stream = task.batches(InMemory(tuple(examples)), batch_size=batch_size)
    losses, state = [], None
    for _ in range(epochs):
        total, count = 0.0, 0.0
        for batch in stream:
            loss = task.loss(batch, state)
            state = loss.state
            optimizer.zero_grad()
            (loss.total / loss.count).backward()
            optimizer.step()
            total, count = total + loss.total.item(), count + loss.count.item()
        losses.append(total / count)
    return losses
