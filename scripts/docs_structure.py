"""The comparisons of docs/records/does_structure_help.md: of structured models, and of attention with none."""

from statistics import mean

from docs_comparisons import NEITHER, ONE_SEED, Comparison, Side, with_interval
from docs_dots import Figure, Line, dots
from docs_records import unbroken

from benchmarks.results import Sense

UP: Sense = ">="
DOWN: Sense = "<="
SIGNS = {UP: "↑", DOWN: "↓"}
CHART_TICKS = (-20, -10, 0, 10, 20, 30, 40)


def _translation(source: str, structured: tuple[str, str], baseline: tuple[str, str]) -> Comparison:
    return Comparison(
        task=f"Japanese {source} to English",
        metric="BLEU",
        sense=UP,
        results=f"translation_{source}",
        structured=Side(structured[0], f"{structured[1]}: BLEU"),
        baseline=Side(baseline[0], f"{baseline[1]}: BLEU"),
    )


def _scan(split: str, task: str, structured: tuple[str, str]) -> Comparison:
    return Comparison(
        task=f"SCAN, {task}",
        metric="errors",
        sense=DOWN,
        results="scan",
        structured=Side(structured[0], f"{split}_{structured[1]}: wer"),
        baseline=Side("softmax", f"{split}: wer"),
    )


def _facts(figure: str, task: str) -> Comparison:
    return Comparison(
        task=f"bAbI, {task}",
        metric="right",
        sense=UP,
        results="babi",
        structured=Side("chain", f"mean: chain {figure}"),
        baseline=Side("successive softmaxes", f"mean: soft {figure}"),
    )


def _entailment(
    corpus: str, structured: tuple[str, str], baseline: tuple[str, str], note: str = ""
) -> Comparison:
    return Comparison(
        task=f"Entailment, {corpus.upper()}{note}",
        metric="accuracy",
        sense=UP,
        results=f"entailment_{corpus}",
        structured=Side(structured[0], f"{structured[1]}: accuracy"),
        baseline=Side(baseline[0], f"{baseline[1]}: accuracy"),
    )


SEGMENTS, SIGMOIDS = ("segments", "segment"), ("sigmoids", "sigmoid")
SOFTMAX, HARD = ("softmax", "simple"), ("hard attention", "hard")
TREE, HEADS, NO_HEADS = ("tree", "tree"), ("independent heads", "soft"), ("no heads", "none")
BOUNDED = (("tree", "tree_bounded"), ("independent heads", "soft_bounded"))

STRUCTURE = (
    *(
        Comparison(
            task=f"Formulas, depth {depth}",
            metric="length to failure",
            sense=UP,
            results="tree_transduction",
            structured=Side("tree", f"structured: depth {depth}"),
            baseline=Side("independent heads", f"simple: depth {depth}"),
        )
        for depth in range(2, 7)
    ),
    _translation("characters", SEGMENTS, SOFTMAX),
    _translation("characters", SEGMENTS, SIGMOIDS),
    _translation("words", SEGMENTS, SOFTMAX),
    _translation("words", SEGMENTS, SIGMOIDS),
    _scan("length", "longer outputs", SEGMENTS),
    _scan("length", "longer outputs", HARD),
    _scan("jump", "a verb seen in isolation", SEGMENTS),
    _scan("jump", "a verb seen in isolation", HARD),
    _facts("answers", "answers"),
    _facts("facts", "supporting facts"),
    _entailment("sick", TREE, HEADS),
    _entailment("sick", *BOUNDED, note=", bounded scores"),
    _entailment("snli", TREE, HEADS),
    _entailment("snli", *BOUNDED, note=", bounded scores"),
)


def _documents(
    corpus: str, task: str, structured: tuple[str, str], baseline: tuple[str, str]
) -> Comparison:
    return Comparison(
        task=f"Sentiment of {task}",
        metric="accuracy",
        sense=UP,
        results=f"documents_{corpus}",
        structured=Side(structured[0], f"{structured[1]}: accuracy"),
        baseline=Side(baseline[0], f"{baseline[1]}: accuracy"),
    )


def _example(results: str, task: str, row: str) -> Comparison:
    """A comparison of an example, whose rows differ in one word."""
    return Comparison(
        task=task,
        metric="right",
        sense=UP,
        results=results,
        structured=Side("softmax", row.format("attention")),
        baseline=Side("no attention", row.format("no attention")),
    )


def _commands(actions: str) -> Comparison:
    return Comparison(
        task=f"SCAN, {actions} actions",
        metric="BLEU",
        sense=UP,
        results="commands_by_length",
        structured=Side("softmax", f"{actions} actions: simple, BLEU"),
        baseline=Side("no attention", f"{actions} actions: none, BLEU"),
    )


ONE_LEVEL, TWO_LEVELS = (
    ("attention over words", "attention"),
    ("attention at two levels", "hierarchical"),
)
MEAN_OF_WORDS, NO_ATTENTION = ("mean of the words", "mean of words"), ("no attention", "none")
REVIEWS, IMDB = ("reviews", "2,000 long reviews"), ("imdb", "50,000 shorter reviews")

ATTENTION = (
    _translation("characters", SOFTMAX, NO_ATTENTION),
    _translation("words", SOFTMAX, NO_ATTENTION),
    *(
        _example(
            "copy_and_reverse",
            f"{task}, {length} tokens",
            f"{row} with {{}}, length {length}",
        )
        for task, row in (("Copying", "copy"), ("Reversing", "reverse"))
        for length in (20, 30)
    ),
    *(
        _example(
            "prefix_to_infix",
            f"Formulas, depth {depth}",
            f"formulas of depth {depth} with {{}}",
        )
        for depth in (4, 5)
    ),
    _commands("24 to 26"),
    _commands("33 to 48"),
    *(
        _entailment(corpus, heads, NO_HEADS)
        for corpus in ("sick", "snli")
        for heads in (HEADS, TREE)
    ),
    *(
        _documents(*corpus, *sides)
        for corpus in (REVIEWS, IMDB)
        for sides in ((ONE_LEVEL, MEAN_OF_WORDS), (TWO_LEVELS, ONE_LEVEL))
    ),
    Comparison(
        task="Sentiment of single sentences",
        metric="accuracy",
        sense=UP,
        results="sentiment",
        structured=Side("attention pooling", "held-out accuracy of attention pooling"),
        baseline=Side("mean of the words", "held-out accuracy of mean pooling"),
    ),
)


def table(comparisons: tuple[Comparison, ...], first: str = "structured") -> str:
    """A row for each comparison; `first` is the name of the column of the model in question."""
    lines = [
        f"| task | {first} | baseline | winner | difference (95 % interval) | seeds |",
        "|---|---|---|---|---:|---|",
    ]
    for each in comparisons:
        sides = [
            f"{side.name} {mean(each.values(side)):.1f}"
            for side in (each.structured, each.baseline)
        ]
        winner = each.winner if each.winner in (NEITHER, ONE_SEED) else f"**{each.winner}**"
        cells = (
            f"{each.task}: {unbroken(f'{each.metric} {SIGNS[each.sense]}')}",
            *sides,
            winner,
            with_interval(each.difference, each.interval),
            each.seeds.replace(" + ", unbroken(" + ")),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def counts(comparisons: tuple[Comparison, ...], first: str) -> str:
    """How many comparisons each side wins, in a sentence."""
    winners = [each.winner for each in comparisons]
    decided = [each for each in comparisons if each.winner not in (NEITHER, ONE_SEED)]
    won = sum(each.gain > 0 for each in decided)
    apart = [each for each in comparisons if each.winner == NEITHER and "all" in each.seeds]
    ahead = sum(each.gain > 0 for each in apart)
    return (
        f"Of {len(comparisons)} comparisons, {first} wins {won} and the baseline {len(decided) - won}; "
        f"{winners.count(NEITHER)} have an interval that includes zero, and {winners.count(ONE_SEED)} have one seed. "
        f"Among the {winners.count(NEITHER)}, all seeds of {first} are ahead of all seeds of the baseline in {ahead}, "
        f"and behind in {len(apart) - ahead}."
    )


def chart() -> str:
    """The gains of structured models with their intervals."""
    lines = list[Line]()
    for each in STRUCTURE:
        sign = 1 if each.sense == UP else -1
        ends = [] if each.interval is None else sorted(sign * end for end in each.interval)
        figure = Figure(1 if each.interval is None else 0, each.gain, *ends)
        sides = f"{each.structured.name} vs. {each.baseline.name}"
        lines.append(Line(each.task, [figure], sides))
    return dots(
        lines,
        title="Gains of structured models over their baselines",
        series=("mean of three seeds, with the 95 % interval over seeds", "one seed, no interval"),
        x_label="points by which the structured model is better",
        ticks=CHART_TICKS,
        zero=0,
    )
