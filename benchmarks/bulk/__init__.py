"""Bulk runs on Ray: speed compared with the bare predictor, memory, and recovery from faults.

    python -m benchmarks.bulk --runs runs                20,000 words, 200,000, and the same with faults
    python -m benchmarks.bulk.large --runs runs          2,000,000 words

Words are compounds of Icelandic words, in 64 shards; the model is the one of `benchmarks.serving`. The rate
of a pool is measured between its first and last records; the start of Ray and its workers is reported
separately. Before and after each pool, one bare predictor per worker runs in a loop, all at the same time.
"""
