"""The summaries that open the pages of results: a table and the figures of its chart, read from results/."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median
from typing import NamedTuple

from docs_comparisons import rows, with_interval
from docs_dots import Figure, Line, dots
from docs_records import unbroken

from benchmarks.results import Row

NONE = ""  # a cell without a figure


class Task(NamedTuple):
    """A row of the summary of docs/records/index.md."""

    title: str
    anchor: str  # the section of the page
    results: str
    case: str
    metric: str
    others: str = ""  # the case of the figures of others, if it is not the same
    charted: bool = False


TASKS = (
    Task(
        "Pronunciation, 10 languages, 800 words each",
        "pronunciation-from-800-words",
        *("g2p_low", "mean", "wer"),
        charted=True,
    ),
    Task(
        "Pronunciation, 10 languages, 8,000 words each",
        "pronunciation-from-8000-words",
        *("g2p_medium", "mean", "wer"),
        charted=True,
    ),
    Task(
        "Pronunciation, English, 33,344 words",
        "pronunciation-of-english-from-33344-words",
        *("g2p_english", "eng_us", "wer"),
        charted=True,
    ),
    Task(
        "Inflection, 13 sets, 10,000 forms each",
        "inflection",
        *("inflection", "mean", "wer"),
        charted=True,
    ),
    Task(
        "Transliteration of names, Russian",
        "transliteration-of-names-into-six-scripts",
        *("katakana", "russian", "wer"),
        charted=True,
    ),
    Task("SCAN, random split", "scan-commands-to-actions", "scan", "simple", "wer"),
    Task("SCAN, a verb seen in isolation", "scan-commands-to-actions", "scan", "jump", "wer"),
    Task("SCAN, longer outputs", "scan-commands-to-actions", "scan", "length", "wer"),
    Task(
        "SCAN, longer outputs, segment attention",
        "scan-commands-to-actions",
        *("scan", "length_segment", "wer", "length"),
    ),
    Task("Japanese to English", "japanese-to-english", "ja_en", "characters", "bleu"),
    Task("German to English", "german-to-english", "de_en", "test_2016_flickr", "bleu"),
)
METRICS = {"wer": unbroken("errors, % ↓"), "bleu": unbroken("BLEU ↑")}


def others(task: Task) -> list[Row]:
    """The figures of others for one task."""
    beginning = f"{task.others or task.case}: "
    found = [row for row in rows(task.results).values() if row.kind is not None]
    return [row for row in found if row.name.startswith(beginning)]


def records_table() -> str:
    """One line for each task, and the source of every figure of others."""
    lines = [
        "| task | metric | one model | 3 models together | others | CPU minutes per model |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for task in TASKS:
        found = rows(task.results)
        minutes = [
            row.value
            for name, row in found.items()
            if name.endswith(": processor minutes")
            and task.case in ("mean", name.partition(":")[0])
        ]
        cells = (
            f"[{task.title}](#{task.anchor})",
            METRICS[task.metric],
            with_range(found[f"{task.case}: {task.metric}"]),
            ensemble(found, f"{task.case}: {task.metric}"),
            "<br>".join(unbroken(f"{row.value:.1f} ({row.kind})") for row in others(task)),
            f"{mean(minutes):.1f}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *sources(TASKS)])


def ensemble(found: Mapping[str, Row], name: str) -> str:
    """The figure of three models together; empty if fewer models are trained."""
    row = found.get(f"{name} of 3 together")
    return NONE if row is None else f"{row.value:.1f}"


def together(found: Mapping[str, Row], name: str) -> list[Figure]:
    """The mark of three models together in a chart, if they are trained."""
    row = found.get(f"{name} of 3 together")
    return [] if row is None else [Figure(1, row.value)]


def sources(tasks: Iterable[Task]) -> list[str]:
    """A list of the figures of others, by kind and source."""
    found = dict[tuple[str, str], list[str]]()
    for row in (row for task in tasks for row in others(task)):
        name = row.name.partition(": ")[2]
        found.setdefault((f"{row.kind}", f"{name}; {row.source}"), []).append(f"{row.value:.1f}")
    return [
        f"- {', '.join(dict.fromkeys(values))} ({kind}): {source}."
        for (kind, source), values in found.items()
    ]


def with_range(row: Row) -> str:
    """A mean with the lowest and the highest of its seeds."""
    if row.spread is None:
        return f"{row.value:.1f}"
    return f"{row.value:.1f} ({unbroken(f'{row.spread[0]:.1f} to {row.spread[1]:.1f}')})"


def records_chart() -> str:
    """Error rates next to the figures of others."""
    lines = list[Line]()
    for task in TASKS:
        if not task.charted:
            continue
        found = rows(task.results)
        one = found[f"{task.case}: {task.metric}"]
        figures = [
            Figure(0, one.value, *(one.spread or ())),
            *together(found, f"{task.case}: {task.metric}"),
            *(Figure(3 if row.kind == "best system" else 2, row.value) for row in others(task)),
        ]
        lines.append(Line(task.title, figures))
    return dots(
        lines,
        title="Error rates of the recipes and of other systems",
        series=(
            "Foveal, one model: mean and range over seeds",
            "Foveal, three models together",
            "baseline or example run of others",
            "best system of the shared task",
        ),
        x_label="errors in percent: lower is better",
        ticks=(0, 10, 20, 30, 40, 50),
    )


INFLECTION = {
    "deu": "German",
    "eng": "English",
    "fin": "Finnish",
    "fra": "French",
    "heb": "Hebrew with vowels",
    "heb_unvoc": "Hebrew without vowels",
    "hun": "Hungarian",
    "ita": "Italian",
    "jap": "Japanese",
    "kat": "Georgian",
    "rus": "Russian",
    "spa": "Spanish",
    "tur": "Turkish",
}


def inflection_chart() -> str:
    """Errors by language, next to the baseline of the shared task."""
    found, lines = rows("inflection"), list[Line]()
    ensembles = {case: together(found, f"{case}: wer") for case in INFLECTION}
    names = ["Foveal, one model"]  # of one seed, or the mean of three
    if all(ensembles.values()):
        names = [f"{names[0]}: mean and range over seeds", "Foveal, three models together"]
    for case, language in INFLECTION.items():
        one, baseline = found[f"{case}: wer"], found[f"{case}: organizers' non-neural baseline"]
        figures = [
            Figure(0, one.value, *(one.spread or ())),
            *ensembles[case],
            Figure(len(names), baseline.value),
        ]
        lines.append(Line(language, figures, case))
    return dots(
        lines,
        title="Errors in inflection by language",
        series=(*names, "organizers' non-neural baseline"),
        x_label="errors in percent: lower is better",
        ticks=(0, 20, 40, 60, 80, 100),
    )


class Experiment(NamedTuple):
    """A row of the summary of docs/records/structured_attention.md; a model without a figure is an empty name."""

    title: str
    anchor: str
    metric: str
    results: str
    none: str
    softmax: str
    sigmoid: str
    structured: str


def _translation(source: str, anchor: str) -> Experiment:
    names = [f"{kind}: BLEU" for kind in ("none", "simple", "sigmoid", "segment")]
    title = f"Japanese {source} to English"
    return Experiment(title, anchor, "BLEU", f"translation_{source}", *names)


EXPERIMENTS = (
    *(
        Experiment(
            f"Formulas, depth {depth}, {note}",
            "tree-transduction",
            "% right before the first error",
            "tree_transduction",
            *(f"none: depth {depth}", f"simple: depth {depth}", NONE, f"structured: depth {depth}"),
        )
        for depth, note in ((4, "as in training"), (6, "deeper"))
    ),
    _translation("characters", "translation-of-characters"),
    _translation("words", "the-same-from-words"),
    Experiment(
        "SCAN, longer outputs",
        "long-commands",
        "% right",
        "commands_by_length",
        *("all: none, right", "all: simple, right", NONE, "all: segment, right"),
    ),
    *(
        Experiment(
            f"bAbI, {title}",
            "questions-over-facts",
            "% right",
            "babi",
            *(NONE, f"mean: soft {figure}", NONE, f"mean: chain {figure}"),
        )
        for title, figure in (("answers", "answers"), ("supporting facts", "facts"))
    ),
)
MODELS = ("no attention or heads", "softmax", "sigmoid", "structured")


def experiments_table() -> str:
    """One line for each experiment."""
    lines = [
        "| experiment | metric | " + " | ".join(MODELS) + " |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for each in EXPERIMENTS:
        found = rows(each.results)
        cells = [with_range(found[name]) if name else "" for name in each[4:]]
        lines.append(
            f"| [{each.title}](#{each.anchor}) | {each.metric} | " + " | ".join(cells) + " |"
        )
    return "\n".join(lines)


def experiments_chart() -> str:
    """All experiments on one scale from 0 to 100."""
    lines = list[Line]()
    for each in EXPERIMENTS:
        found = [(number, rows(each.results)[name]) for number, name in enumerate(each[4:]) if name]
        figures = [Figure(number, row.value, *(row.spread or ())) for number, row in found]
        lines.append(Line(each.title, figures, each.metric))
    return dots(
        lines,
        title="Models without attention, with simple attention and with structured attention",
        series=MODELS,
        x_label="percent or BLEU: higher is better",
        ticks=(0, 20, 40, 60, 80, 100),
    )


class Pair(NamedTuple):
    """A difference of docs/records/pairs_and_documents.md between two models on the same test examples."""

    title: str
    results: str
    better: str  # the names of the two models in the file: the row is "better - worse"
    worse: str
    words: str  # the names of the two on the page


ENTAILMENT = (
    ("soft", "none", "independent heads vs. none"),
    ("tree", "none", "tree vs. no heads"),
    ("tree", "soft", "tree vs. independent heads"),
)
DOCUMENTS = (
    ("attention", "mean of words", "attention vs. mean of words"),
    ("hierarchical", "attention", "two levels vs. one"),
)
PAIRS = (
    *(Pair("Entailment, SICK", "entailment_sick", *each) for each in ENTAILMENT),
    *(Pair("Entailment, SNLI", "entailment_snli", *each) for each in ENTAILMENT),
    *(Pair("Sentiment, long reviews", "documents_reviews", *each) for each in DOCUMENTS),
    *(Pair("Sentiment, IMDB", "documents_imdb", *each) for each in DOCUMENTS),
)


def pairs_table() -> str:
    """One line for each difference, with the accuracies of both models."""
    lines = [
        "| task | models | accuracy of the first | of the second | difference (95 % interval) | seeds |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for pair in PAIRS:
        found = rows(pair.results)
        row = found[f"{pair.better} - {pair.worse}: difference"]
        cells = (
            pair.title,
            pair.words,
            with_range(found[f"{pair.better}: accuracy"]),
            with_range(found[f"{pair.worse}: accuracy"]),
            with_interval(row.value, row.spread),
            str(len(row.seeds)),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def pairs_chart() -> str:
    """The differences with the intervals of the paired bootstrap."""
    lines = list[Line]()
    for pair in PAIRS:
        row = rows(pair.results)[f"{pair.better} - {pair.worse}: difference"]
        lines.append(Line(pair.title, [Figure(0, row.value, *(row.spread or ()))], pair.words))
    return dots(
        lines,
        title="Differences in accuracy between two models on the same test examples",
        series=("difference, with the 95 % interval of the paired bootstrap",),
        x_label="points of accuracy by which the first model is better",
        ticks=(-2, 0, 2, 4, 6),
        zero=0,
    )


PEERS = (
    ("Linear chain", "chain", ("torch-struct", "pytorch-crf", "supar")),
    ("Semi-Markov", "semi-Markov", ("torch-struct",)),
    ("Projective tree", "projective tree", ("torch-struct", "supar")),
    ("Spanning tree", "spanning tree", ("torch-struct", "supar")),
    ("Span tree", "span tree", ("torch-struct", "supar")),
)


def speeds(results: str, structure: str, peer: str) -> list[float]:
    """How many times faster a training step is than a peer's, for all sizes without varied lengths."""
    beginning, end = f"{structure} train (", f") vs {peer}"
    found = rows(results).items()
    return [row.value for name, row in found if name.startswith(beginning) and name.endswith(end)]


def benchmarks_table() -> str:
    """A line for each structure and library: the median over sizes, with the lowest and the highest."""
    lines = ["| structure | compared with | PyTorch only | C++ kernels |", "|---|---|---:|---:|"]
    for title, structure, peers in PEERS:
        for peer in peers:
            found = [speeds(file, structure, peer) for file in ("structures", "structures_native")]
            cells = (title, peer, *map(_times, found))
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _times(found: Sequence[float]) -> str:
    if not found:
        return "not measured"
    digits = [
        f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
        for value in (median(found), min(found), max(found))
    ]
    if len(found) == 1:
        return f"{digits[0]}x"
    return f"{digits[0]}x ({unbroken(f'{digits[1]} to {digits[2]}')})"
