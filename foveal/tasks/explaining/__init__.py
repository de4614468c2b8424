"""Explanations of a model's answer, which each task provides."""
