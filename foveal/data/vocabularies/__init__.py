"""Vocabularies: map tokens to ids; they are counted from a corpus."""
