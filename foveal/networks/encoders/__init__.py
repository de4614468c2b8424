"""Encoders: text, words, documents, facts and images to a `Memory`."""
