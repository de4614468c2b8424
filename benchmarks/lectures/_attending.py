"""Decoders that attend after the step, after it with input feeding, and before it: quality and cost.

results/attending.json
"""

from recipes import attending

from ._forms import Forms

NAME = "attending"
score = Forms(
    name=NAME,
    recipe=attending.recipe,
    corpora=attending.CORPORA,
    forms=attending.FORMS,
    baseline="after",
    of_sentences={"ja_en"},
).score
