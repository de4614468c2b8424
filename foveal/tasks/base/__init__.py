"""Parts that tasks share: prediction, search, evaluation and losses."""
