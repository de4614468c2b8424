"""Word alignments extracted from attention, and their scores."""
