"""Texts as tokens, and tokens as ids."""
