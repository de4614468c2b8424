"""Streams: examples to shuffled, packed and resumable batches."""
