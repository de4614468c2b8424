"""Streams: shuffled, packed and resumable batches of examples."""
