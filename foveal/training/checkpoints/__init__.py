"""State on disk: checkpoints, the lock of a run, and the fingerprints of its input files."""
