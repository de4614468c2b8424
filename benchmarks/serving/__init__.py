"""How much of a model's speed does the server leave, and does it keep its word under load?

    python -m benchmarks.serving                       fits the models first, some minutes on one core
    python -m benchmarks.serving --runs runs/serving   uses those that are there

Real processes on the loopback interface; the load runs on the same machine as the server. The words are
Icelandic (SIGMORPHON 2021), alone and as compounds of two and three, so that lengths are mixed.
"""
