"""Tokenizers: text to symbols and back."""
