"""How much of a model's speed is left behind a server, and is the server reliable under load?

    python -m benchmarks.serving                       fits the models first, some minutes on one core
    python -m benchmarks.serving --runs runs/serving   uses existing models

Real processes on the loopback interface; the load runs on the same machine as the server. The inputs are
Icelandic words (SIGMORPHON 2021) and compounds of two and three words, for a mix of lengths.
"""
