"""Benchmarks: one file per question, other libraries measured in the same run.

    python -m benchmarks.structures     how fast, exact and lean are the distributions?
    python -m benchmarks.seq2seq        how close to the bare engine do models train, how fast do they write?
    python -m benchmarks.shortfalls     which measured figures miss what was asked for?

`results` holds the one format in which every benchmark and recipe writes its figures.
"""
