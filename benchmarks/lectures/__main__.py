"""Fit the models of an experiment with several seeds, or score the fitted models.

    python -m benchmarks.lectures fit tree_transduction --runs runs              all cases and seeds
    python -m benchmarks.lectures fit tree_transduction --runs runs --cases simple --seeds 4
    python -m benchmarks.lectures score tree_transduction --runs runs            writes results/
    python -m benchmarks.lectures references babi                                targets and published figures only

Existing runs are not repeated, hence a queue can be stopped and started again. Only `score` reads test
examples. `score` replaces the figures of its cases; a file keeps the figures of its other cases.
"""

from collections.abc import Sequence

from recipes import (
    attending,
    attention_losses,
    babi,
    cloze,
    cogs,
    conditioning,
    context,
    delay,
    dialog,
    documents,
    en_fr,
    entailment,
    execute,
    hypotheses,
    memory,
    scan,
    segment_translation,
    self_attention_lm,
    sentence_trees,
    shakespeare_units,
    side_by_side,
    spoken_digits,
    summarization,
    transformer,
    tree_transduction,
)

from ..experiments import Experiment, command
from . import (
    _attending,
    _attention_losses,
    _by_length,
    _cloze,
    _cogs,
    _conditioning,
    _context,
    _delay,
    _dialog,
    _documents,
    _en_fr,
    _entailment,
    _execute,
    _facts,
    _formulas,
    _hypotheses,
    _memory,
    _self_attention_lm,
    _sentence_trees,
    _side_by_side,
    _spoken_digits,
    _summarization,
    _transformer_models,
    _translation,
    _units,
)

EXPERIMENTS = {
    _attending.NAME: Experiment(attending.recipe, attending.CASES, (1, 2, 3), _attending.score),
    _attention_losses.NAME: Experiment(
        attention_losses.recipe, attention_losses.CASES, (1, 2, 3), _attention_losses.score
    ),
    _formulas.NAME: Experiment(
        tree_transduction.recipe, tree_transduction.CASES, (1, 2, 3), _formulas.score
    ),
    _translation.NAME: Experiment(
        segment_translation.recipe,
        segment_translation.CASES,
        (1, 2, 3),
        _translation.score,
        _translation.write_references,
    ),
    _summarization.NAME: Experiment(
        summarization.recipe, summarization.CASES, (1, 2, 3), _summarization.score
    ),
    _by_length.NAME: Experiment(scan.recipe, _by_length.CASES, (1, 2, 3), _by_length.score),
    _delay.NAME: Experiment(delay.recipe, delay.CASES, (1, 2, 3), _delay.score),
    _execute.NAME: Experiment(execute.recipe, execute.CASES, (1, 2, 3), _execute.score),
    _facts.NAME: Experiment(babi.recipe, babi.CASES, (1,), _facts.score, _facts.write_references),
    _dialog.NAME: Experiment(dialog.recipe, dialog.CASES, (1, 2, 3), _dialog.score),
    _documents.NAME: Experiment(documents.recipe, documents.CASES, (1,), _documents.score),
    _cogs.NAME: Experiment(cogs.recipe, cogs.CASES, (1, 2, 3), _cogs.score),
    _conditioning.NAME: Experiment(
        conditioning.recipe, conditioning.CASES, (1, 2, 3), _conditioning.score
    ),
    _context.NAME: Experiment(context.recipe, context.CASES, (1, 2, 3), _context.score),
    _self_attention_lm.NAME: Experiment(
        self_attention_lm.recipe, self_attention_lm.CASES, (1, 2, 3), _self_attention_lm.score
    ),
    _sentence_trees.NAME: Experiment(
        sentence_trees.recipe, sentence_trees.CASES, (1, 2, 3), _sentence_trees.score
    ),
    _transformer_models.NAME: Experiment(
        transformer.recipe, transformer.CASES, (1, 2, 3), _transformer_models.score
    ),
    _entailment.NAME: Experiment(
        entailment.recipe,
        entailment.CASES,
        (1, 2, 3),
        _entailment.score,
        _entailment.write_references,
    ),
    _cloze.NAME: Experiment(cloze.recipe, cloze.CASES, (1, 2, 3), _cloze.score),
    _hypotheses.NAME: Experiment(hypotheses.recipe, hypotheses.CASES, (1, 2, 3), _hypotheses.score),
    _memory.NAME: Experiment(memory.recipe, memory.CASES, (1, 2, 3), _memory.score),
    _en_fr.NAME: Experiment(en_fr.recipe, en_fr.CASES, (1, 2, 3), _en_fr.score),
    _side_by_side.NAME: Experiment(
        side_by_side.recipe, side_by_side.CASES, (1,), _side_by_side.score
    ),
    _spoken_digits.NAME: Experiment(
        spoken_digits.recipe, spoken_digits.CASES, (1, 2, 3), _spoken_digits.score
    ),
    _units.NAME: Experiment(shakespeare_units.recipe, shakespeare_units.CASES, (1,), _units.score),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the subcommand that the first argument names."""
    command(EXPERIMENTS, __doc__, arguments)


if __name__ == "__main__":
    main()
