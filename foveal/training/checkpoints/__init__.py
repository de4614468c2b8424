"""State on disk: checkpoints, the lock of a run, and the files that it reads."""
