"""Sightline: attention models you can see into.

Attention is an expectation under a distribution over selections,

    context = E[ read(values, z) ],   z ~ p(z | scores),

and this package is the home of those distributions. Lowest floor first:

    errors, shapes, masking   what every floor stands on
    inference                 pure functions on log-potentials
    distributions             values with one set of verbs
    testing                   the laws that any distribution can be put through
"""

__version__ = "0.1.0"
