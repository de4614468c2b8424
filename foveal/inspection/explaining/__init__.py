"""Explanations of one prediction: attention, alternatives, and the positions it depends on."""
