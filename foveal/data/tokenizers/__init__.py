"""Tokenizers: convert text to tokens and back."""
