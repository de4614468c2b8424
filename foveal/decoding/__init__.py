"""Decoding: search for the outputs of any autoregressive model, a whole batch at a time.

A search uses only the `Stepper` protocol and does not depend on the model.
"""

from ._automaton import Automaton as Automaton
from ._beam_search import beam_search as beam_search
from ._ensemble import Ensemble as Ensemble
from ._greedy import greedy as greedy
from ._hypotheses import Hypotheses as Hypotheses
from ._languages import (
    allowed_tokens as allowed_tokens,
    balanced as balanced,
    lexicon as lexicon,
    regular_expression as regular_expression,
)
from ._penalties import CoveragePenalty as CoveragePenalty, LengthPenalty as LengthPenalty
from ._risk import (
    edit_similarity as edit_similarity,
    minimum_bayes_risk as minimum_bayes_risk,
    ngram_similarity as ngram_similarity,
)
from ._sample import sample as sample
from ._stepper import Stepper as Stepper
from ._stochastic_beam_search import stochastic_beam_search as stochastic_beam_search
