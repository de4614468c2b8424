"""Alignments of words as an answer, from what a model attends to, and their scores."""
