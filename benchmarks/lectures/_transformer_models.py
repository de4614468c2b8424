"""The LSTM, a Transformer, and a Transformer with heads of segments: quality and cost.

results/transformer_models.json
"""

from recipes import transformer

from ._forms import Forms

NAME = "transformer_models"
score = Forms(
    name=NAME,
    recipe=transformer.recipe,
    corpora=transformer.CORPORA,
    forms=transformer.FORMS,
    baseline="lstm",
).score
