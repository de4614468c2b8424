"""Foveal: attention models you can see into.

Attention is an expectation under a distribution over selections,

    context = E[ read(values, z) ],   z ~ p(z | scores),

so every attention is score -> distribute -> read. Lowest floor first:

    errors, shapes, masking   what every floor stands on
    specs                     frozen dataclasses as JSON and as settings
    inference                 pure functions on log-potentials
    distributions             values with one set of verbs
    estimators                training through samples of a distribution
    attention                 score -> distribute -> read; Memory in, Attended out
    networks                  cells, stacks, encoders, bridges, decoders
    models                    whole networks for one shape of problem, built from specs
    testing                   the laws that all of these can be put through
"""

__version__ = "0.1.0"
