"""Semi-Markov chains: segmentations with labels."""
