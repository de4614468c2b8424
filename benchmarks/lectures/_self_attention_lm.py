"""Language models with self-attention next to LSTMs: bits per character, by tokens, model size and data size.

    results/self_attention_lm.json           bits per character on the test plays
    results/texts/self_attention_lm.json     sampled text by temperature
    results/shown/self_attention_lm.json     attention of every head on a line of the validation plays

A line counts with its end, which is one character. The rows `size of` and `data of` are the points of the scaling
plot. Every case has the seeds that were fitted. The files keep the figures and texts of cases that are not scored.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

import torch

from foveal.attention import AttentionTrace
from foveal.bundles import load_bundle
from foveal.data import END, Example
from foveal.data.vocabularies._vocabulary import PADDING
from foveal.decoding import sample
from foveal.tasks import LanguageModeling
from foveal.tasks.base._speaking import Speaking
from recipes import self_attention_lm as recipes

from ..records._fitting import Cost, fitted_seeds
from ..results import Row, digests
from ._comparison import mean_row, spec_of, update
from ._shown import Shown, save_entries, save_shown

NAME = "self_attention_lm"
TEMPERATURES = (0.3, 0.7, 1.0)
SAMPLED = 300  # tokens of a sampled text
LENGTHS = range(16, 24)  # characters of the line whose attention is shown
LINE_END = "⟨end⟩"


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update the figures, texts and pictures of the cases that were fitted, each with its fitted seeds."""
    rows, specs, texts = list[Row](), dict[str, object](), dict[str, object]()
    for case in recipes.CASES:
        found = fitted_seeds(runs, NAME, case, seeds)
        if case not in cases or not found:
            continue
        done, folders = tuple(found), tuple(found.values())
        tasks = [_loaded(folder) for folder in folders]
        run = recipes.recipe(case)
        rows += _rows(case, tasks, folders, done)
        specs[case] = spec_of(run)
        if case.startswith(("characters", "subwords")):
            texts[case] = [
                {"temperature": each, "text": _text(tasks[0], each)} for each in TEMPERATURES
            ]
        if case == "characters_transformer":
            assert run.dev is not None
            save_shown(results, NAME, case, list(_heads(tasks[0], list[Example](run.dev))))
        print(case, done, f"{rows[-1].value:.3f}")
    data = digests([recipes.PLAYS], recipes.DATA)
    update(results / f"{NAME}.json", NAME, rows, data=data, spec=specs)
    save_entries(results / f"texts/{NAME}.json", texts)


def _rows(
    case: str, tasks: Sequence[LanguageModeling], folders: Sequence[Path], seeds: Sequence[int]
) -> Iterator[Row]:
    """Yield the figures of a case, its points of the scaling plot last."""
    kind, network, *number = case.split("_")
    size = sum(weights.numel() for weights in tasks[0].model.parameters())
    test = list[Example](recipes.part("test"))
    bits = [bits_per_character(task, test) for task in tasks]
    if kind in ("characters", "subwords"):
        name = f"plays, {kind}, {network}"
        minutes = mean(Cost.load(folder).processor_minutes for folder in folders)
        yield Row(name=f"{name}: weights", value=size, unit="", seeds=tuple(seeds))
        yield Row(name=f"{name}: processor", value=minutes, unit="minutes", seeds=tuple(seeds))
        yield mean_row(f"{name}: bits per character", bits, "bits", seeds)
    if kind in ("characters", "size"):
        yield mean_row(f"size of {network}, {size}: bits per character", bits, "bits", seeds)
    if kind == "data" or case == f"size_{network}_{recipes.WIDTHS[network] // 2}":
        train = recipes.part("train", int(number[0]) if kind == "data" else 1)
        characters = sum(len(example.text) + 1 for example in list[Example](train))
        yield mean_row(f"data of {network}, {characters}: bits per character", bits, "bits", seeds)


def bits_per_character(task: LanguageModeling, examples: Sequence[Example]) -> float:
    """Return the negative log-likelihood of the lines and their ends, in bits for each character."""
    num_tokens = sum(len(task.encode(example).source) for example in examples)
    num_characters = sum(len(example.text) + 1 for example in examples)
    perplexity = task.evaluate(examples).statistics["perplexity"].value
    return math.log2(perplexity) * num_tokens / num_characters


def _loaded(folder: Path) -> LanguageModeling:
    task = load_bundle(folder)
    assert isinstance(task, LanguageModeling)
    return task


def _text(task: LanguageModeling, temperature: float) -> str:
    """Return sampled text of several lines. No sample is padding, so the text does not end before its length."""
    with task.answering():
        drawn = sample(
            Speaking(task.model.stepper()),
            task.model.start(1),
            begin=END,
            end=PADDING,
            max_length=SAMPLED,
            temperature=temperature,
            generator=torch.Generator().manual_seed(1),
        )
    lines: list[list[int]] = [[]]
    for token in drawn.tokens[0, 0].tolist():
        if token == END:
            lines.append([])
        else:
            lines[-1].append(token)
    source, vocabulary = task.spec.source, task.vocabularies.source
    return "\n".join(source.decode(vocabulary.decode(line)) for line in lines)


def _heads(task: LanguageModeling, examples: Sequence[Example]) -> Iterator[Shown]:
    """Yield the attention of every head on the first line of suitable length."""
    example = next(example for example in examples if len(example.text) in LENGTHS)
    labels = [*example.text, LINE_END]
    with task.answering():
        tokens = torch.tensor([[END, *task.encode(example).source[:-1]]])
        layers = task.model.self_attentions(tokens)
    for layer, attended in enumerate(layers, 1):
        for head, weights in enumerate(attended.weights[0], 1):
            trace = AttentionTrace(
                kind="softmax",
                sources=(LINE_END, *labels[:-1]),
                targets=tuple(labels),
                weights=tuple(map(tuple, weights.tolist())),
            )
            yield Shown(f"Layer {layer}, head {head}", trace)
