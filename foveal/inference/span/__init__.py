"""Span trees: binary constituency trees."""
