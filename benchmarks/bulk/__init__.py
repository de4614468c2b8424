"""Bulk runs on Ray: speed compared with the bare predictor, memory, and recovery from faults.

    python -m benchmarks.bulk --runs runs                20,000 words, 200,000, and the same with faults
    python -m benchmarks.bulk.large --runs runs          2,000,000 words

Words are compounds of Icelandic ones, in 64 shards; the model is the one that `benchmarks.serving` asks. A
pool's rate is that between its first records and its last: the start of Ray and of its workers is apart. As
many bare predictors as the pool has workers are called in loops, at once, before and after each pool.
"""
