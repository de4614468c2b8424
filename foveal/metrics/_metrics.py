"""Metrics: from references and hypotheses to counts for each example.

jiwer computes edit distances, sacrebleu computes BLEU and chrF. Rates and scores are in percent, perplexity
is not. References: Papineni et al. 2002; Popovic 2015; Tjong Kim Sang and Buchholz 2000 (F1 of
spans, counted as in their script conlleval).

Axes: N examples, F counts of an example, R sums of rows.
"""

from collections.abc import Sequence
from importlib.metadata import version
from itertools import pairwise, zip_longest
from typing import Any, Literal

import jiwer
import numpy as np
from jaxtyping import Float
from sacrebleu.metrics.base import Metric as SacreMetric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from ._statistics import Statistics, check_labels, check_pairs, each_of


def exact_match(references: Sequence[str | Sequence[str]], hypotheses: Sequence[str]) -> Statistics:
    """Compute the fraction of outputs that equal their reference, or one of their references, character by character.

    Args:
        references: References, one or several for each output.
        hypotheses: Outputs, in the same order.

    Returns:
        The percentage of equal outputs.

    Raises:
        ShapeError: The numbers of references and outputs differ, or are 0.

    Examples:
        >>> exact_match(["a b", "c"], ["a b", "d"]).value
        50.0
    """
    return _share("exact_match", references, hypotheses, wrong=False)


def wrong_words(references: Sequence[str], hypotheses: Sequence[str]) -> Statistics:
    """Compute the WER of grapheme-to-phoneme conversion and transliteration, where every output is one
    word: the fraction of outputs that differ from their reference, 100 - exact match.

    Args:
        references: References, one per output.
        hypotheses: Outputs, in the same order.

    Returns:
        The percentage of outputs that differ; lower is better.

    Examples:
        >>> wrong_words(["p a", "t a"], ["p a", "t o"]).value
        50.0
    """
    return _share("wer", references, hypotheses, wrong=True)


def word_error_rate(
    references: Sequence[str], hypotheses: Sequence[str], *, name: str = "wer"
) -> Statistics:
    """Compute insertions, deletions and substitutions per hundred reference tokens, separated by whitespace. If the
    tokens are phones, this is the phone error rate (`name="per"`).

    Args:
        references: References, one per output.
        hypotheses: Outputs, in the same order.
        name: Name of the metric in reports.

    Returns:
        The error rate in percent, which may exceed 100; lower is better.

    Raises:
        ShapeError: The numbers of references and outputs differ, or are 0.

    Examples:
        >>> word_error_rate(["a b c d"], ["a x c"]).value
        50.0
    """
    check_pairs("word_error_rate", len(references), len(hypotheses))
    output = jiwer.process_words(list(references), list(hypotheses))
    return _edits(name, output, "whitespace-separated tokens")


def length_to_failure(references: Sequence[str], hypotheses: Sequence[str]) -> Statistics:
    """Compute the mean length of outputs before their first error, in percent of the reference. Tokens are separated
    by whitespace, and the end counts as a token (Kim et al. 2017, section 4.1).

    Args:
        references: References, one per output.
        hypotheses: Outputs, in the same order.

    Returns:
        The mean percentage; higher is better.

    Raises:
        ShapeError: The numbers of references and outputs differ, or are 0.

    Examples:
        >>> length_to_failure(["a b c", "a"], ["a b x", "b"]).value
        25.0
    """
    check_pairs("length_to_failure", len(references), len(hypotheses))
    rows = [
        (_num_right(reference.split(), hypothesis.split()) / (len(reference.split()) + 1), 1)
        for reference, hypothesis in zip(references, hypotheses, strict=True)
    ]
    return Statistics(
        name="length_to_failure",
        rows=np.array(rows, dtype=np.float64),
        score=_ratio,
        signature="number of tokens before the first error, including the end token, mean over outputs",
        higher_is_better=True,
    )


def character_error_rate(references: Sequence[str], hypotheses: Sequence[str]) -> Statistics:
    """Compute insertions, deletions and substitutions per hundred reference code points.

    Args:
        references: References, one per output.
        hypotheses: Outputs, in the same order.

    Returns:
        The error rate in percent, which may exceed 100; lower is better.

    Raises:
        ShapeError: The numbers of references and outputs differ, or are 0.

    Examples:
        >>> character_error_rate(["abcd"], ["abc"]).value
        25.0
    """
    check_pairs("character_error_rate", len(references), len(hypotheses))
    output = jiwer.process_characters(list(references), list(hypotheses))
    return _edits("cer", output, "code points")


def bleu(
    references: Sequence[str | Sequence[str]], hypotheses: Sequence[str], *, tokenize: str = "13a"
) -> Statistics:
    """Compute corpus BLEU with sacrebleu.

    Args:
        references: References, one or several for each output.
        hypotheses: Outputs, in the same order.
        tokenize: Tokenizer of sacrebleu: "none" for tokenized text, "13a" for raw text.

    Returns:
        BLEU from 0 to 100, with the signature of sacrebleu.

    Raises:
        ShapeError: The numbers of references and outputs differ, or are 0.
    """
    metric = BLEU(tokenize=tokenize, force=True)
    return _by_sacrebleu("bleu", metric, references, hypotheses)


def chrf(references: Sequence[str], hypotheses: Sequence[str]) -> Statistics:
    """Compute corpus chrF2 with sacrebleu.

    Args:
        references: References, one per output.
        hypotheses: Outputs, in the same order.

    Returns:
        chrF2 from 0 to 100, with the signature of sacrebleu.

    Raises:
        ShapeError: The numbers of references and outputs differ, or are 0.
    """
    return _by_sacrebleu("chrf", CHRF(), references, hypotheses)


def accuracy(
    references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]
) -> Statistics:
    """Compute the fraction of correct labels; an example has one label or many.

    Args:
        references: Labels of each example.
        hypotheses: Predicted labels of each example, one for each reference label.

    Returns:
        The percentage over the labels of all examples.

    Raises:
        ShapeError: The numbers of references and outputs, or of the labels of an example, differ, or there are none.

    Examples:
        >>> accuracy([["N", "V"], ["D"]], [["N", "N"], ["D"]]).value.__round__(1)
        66.7
    """
    check_labels("accuracy", references, hypotheses)
    rows = [
        (sum(r == h for r, h in zip(reference, hypothesis, strict=True)), len(reference))
        for reference, hypothesis in zip(references, hypotheses, strict=True)
    ]
    single = all(len(reference) == 1 for reference in references)
    return Statistics(
        name="accuracy",
        rows=np.array(rows, dtype=np.float64),
        score=_ratio,
        signature="labels equal to the reference",
        higher_is_better=True,
        share=single,
    )


def f1(
    references: Sequence[Sequence[str]],
    hypotheses: Sequence[Sequence[str]],
    *,
    average: Literal["macro", "micro"] = "macro",
) -> Statistics:
    """Compute the F1 of labels: the mean over the labels that occur (macro), or over all labels at once (micro).

    Args:
        references: Labels of each example.
        hypotheses: Predicted labels of each example, one for each reference label.
        average: Whether to average over labels, or to count all labels together.

    Returns:
        F1 in percent.

    Raises:
        ShapeError: The numbers of references and outputs, or of the labels of an example, differ, or there are none.

    Examples:
        >>> f1([["a"], ["a"], ["b"]], [["a"], ["b"], ["b"]]).value.__round__(1)
        66.7
    """
    check_labels("f1", references, hypotheses)
    labels = sorted({label for side in (references, hypotheses) for row in side for label in row})
    column = {label: number for number, label in enumerate(labels)}
    counts = np.zeros((len(references), 3, len(labels)))
    for row, reference, hypothesis in zip(counts, references, hypotheses, strict=True):
        for gold, predicted in zip(reference, hypothesis, strict=True):
            row[_RIGHT, column[gold]] += gold == predicted
            row[_PREDICTED, column[predicted]] += 1
            row[_GOLD, column[gold]] += 1
    if average == "micro":
        counts = counts.sum(2, keepdims=True)
    return Statistics(
        name=f"{average}_f1",
        rows=counts.reshape(len(counts), -1),
        score=_mean_f1,
        signature=f"F1 of labels, {average} average over the labels that occur",
        higher_is_better=True,
    )


def span_f1(references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]) -> Statistics:
    """Compute the F1 of spans in tags B-X, I-X and O. A span is correct if its start, end and type are.

    Args:
        references: Tags of each sentence, one per word.
        hypotheses: Predicted tags of each sentence.

    Returns:
        F1 in percent, over the spans of all types.

    Raises:
        ShapeError: The numbers of references and outputs, or of the labels of an example, differ, or there are none.

    Examples:
        >>> span_f1([["B-A", "I-A", "O", "B-B"]], [["B-A", "I-A", "O", "B-A"]]).value
        50.0
    """
    check_labels("span_f1", references, hypotheses)
    rows = [
        (len(gold & predicted), len(predicted), len(gold))
        for gold, predicted in (
            (spans(reference), spans(hypothesis))
            for reference, hypothesis in zip(references, hypotheses, strict=True)
        )
    ]
    return Statistics(
        name="span_f1",
        rows=np.array(rows, dtype=np.float64),
        score=_mean_f1,
        signature="F1 of spans in B-, I-, O, all types together",
        higher_is_better=True,
    )


def perplexity(log_probs: Sequence[float], num_tokens: Sequence[int]) -> Statistics:
    """Compute the exponential of the mean negative log-probability of a token.

    Args:
        log_probs: Natural log-probability of each example, summed over its tokens.
        num_tokens: Number of tokens of each example.

    Returns:
        The perplexity, at least 1; lower is better.

    Raises:
        ShapeError: The numbers of log-probabilities and counts differ, or are 0.
    """
    check_pairs("perplexity", len(log_probs), len(num_tokens))
    return Statistics(
        name="perplexity",
        rows=np.array([(-lp, n) for lp, n in zip(log_probs, num_tokens, strict=True)], np.float64),
        score=lambda sums: np.exp(sums[:, 0] / np.maximum(sums[:, 1], 1)),
        signature="exp of the mean negative log-probability of a token",
        higher_is_better=False,
    )


def spans(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """Return the start, end and type of every span. As in conlleval, an I-X that continues no span of type X
    begins one.

    Args:
        tags: Tags of one sentence: B-X, I-X and O.

    Returns:
        Triples of the first position, the position after the last, and the type.

    Examples:
        >>> sorted(spans(["B-A", "I-A", "I-B", "O"]))
        [(0, 2, 'A'), (2, 3, 'B')]
    """
    ends = [t + 1 for t, tag in enumerate(tags) if [*tags[t + 1 : t + 2]] != [f"I{tag[1:]}"]]
    return {
        (start, end, tags[start][2:]) for start, end in pairwise([0, *ends]) if tags[start] != "O"
    }


_RIGHT, _PREDICTED, _GOLD = range(3)


def _share(
    name: str,
    references: Sequence[str | Sequence[str]],
    hypotheses: Sequence[str],
    *,
    wrong: bool,
) -> Statistics:
    check_pairs(name, len(references), len(hypotheses))
    pairs = zip(each_of(references), hypotheses, strict=True)
    rows = [((output in texts) != wrong, 1) for texts, output in pairs]
    return Statistics(
        name=name,
        rows=np.array(rows, dtype=np.float64),
        score=_ratio,
        signature=f"outputs that {'differ from' if wrong else 'equal'} the reference",
        higher_is_better=not wrong,
        share=True,
    )


def _edits(name: str, output: jiwer.WordOutput | jiwer.CharacterOutput, units: str) -> Statistics:
    """Return the edits and reference units of each example from the alignments of jiwer."""
    rows = [
        (
            sum(_num_edits(chunk) for chunk in chunks if chunk.type != "equal"),
            len(reference),
        )
        for chunks, reference in zip(output.alignments, output.references, strict=True)
    ]
    return Statistics(
        name=name,
        rows=np.array(rows, dtype=np.float64),
        score=_ratio,
        signature=f"jiwer {version('jiwer')}, {units}",
        higher_is_better=False,
    )


def _num_edits(chunk: jiwer.AlignmentChunk) -> int:
    """Count the edits of a chunk. Substitutions have equal lengths on both sides; other edits are empty on one."""
    return max(chunk.ref_end_idx - chunk.ref_start_idx, chunk.hyp_end_idx - chunk.hyp_start_idx)


def _num_right(reference: Sequence[str], hypothesis: Sequence[str]) -> int:
    """Count the tokens before the first difference, with the end as one more token of both."""
    pairs = zip_longest(reference, hypothesis)  # after the end of one, the other differs from None
    right = next((n for n, (gold, said) in enumerate(pairs) if gold != said), None)
    return len(reference) + 1 if right is None else right


def _by_sacrebleu(
    name: str,
    metric: SacreMetric,
    references: Sequence[str | Sequence[str]],
    hypotheses: Sequence[str],
) -> Statistics:
    """Use the sentence counts of sacrebleu and its score of their sum, as its bootstrap does. sacrebleu offers both
    only as protected methods.
    """
    check_pairs(name, len(references), len(hypotheses))
    # One list of all first references, one of all second references, ..., with None for missing references.
    streams = [list(texts) for texts in zip_longest(*each_of(references))]
    rows = metric._extract_corpus_statistics(list(hypotheses), streams)

    def score(sums: Float[np.ndarray, "R F"]) -> Float[np.ndarray, " R"]:
        counts: list[list[Any]] = sums.round().astype(np.int64).tolist()
        return np.array([metric._compute_score_from_stats(row).score for row in counts])

    return Statistics(
        name=name,
        rows=np.array(rows, dtype=np.float64),
        score=score,
        signature=str(metric.get_signature()),
        higher_is_better=True,
    )


def _ratio(sums: Float[np.ndarray, "R F"]) -> Float[np.ndarray, " R"]:
    """Compute 100 a / b, or 100 a if b is 0, which is the convention of jiwer for empty references."""
    return 100 * sums[:, 0] / np.maximum(sums[:, 1], 1)


def _mean_f1(sums: Float[np.ndarray, "R F"]) -> Float[np.ndarray, " R"]:
    """Compute 200 right / (predicted + gold), averaged over the classes that occur; 0 if none does."""
    right, predicted, gold = np.moveaxis(sums.reshape(len(sums), 3, -1), 1, 0)
    occurs = predicted + gold > 0
    each = np.where(occurs, 200 * right / np.where(occurs, predicted + gold, 1), 0.0)
    return each.sum(-1) / np.maximum(occurs.sum(-1), 1)
