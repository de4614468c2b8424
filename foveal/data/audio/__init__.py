"""Recordings: read from files, resampled, and as log-mel features."""
