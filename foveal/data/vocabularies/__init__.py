"""Vocabularies: symbols to numbers, counted from a corpus."""
