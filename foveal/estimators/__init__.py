"""Estimators: training through samples of a distribution instead of its marginals.

    gradient of E[ f(z) ],   z ~ p(z | scores)

A sample is discrete and has no gradient. Each estimator takes any distribution and returns a tensor
whose backward pass estimates that gradient.
"""

from ._perturb_and_map import perturb_and_map as perturb_and_map
from ._score_function import score_function as score_function
from ._straight_through import straight_through as straight_through
