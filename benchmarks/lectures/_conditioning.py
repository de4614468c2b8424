"""Decoders that get the source in their initial state, at every step, in both, or by attention: quality and cost.

results/conditioning.json
"""

from recipes import conditioning

from ._forms import Forms

NAME = "conditioning"
score = Forms(
    name=NAME,
    recipe=conditioning.recipe,
    corpora=conditioning.CORPORA,
    forms=conditioning.BRIDGES,
    baseline="attention",
).score
