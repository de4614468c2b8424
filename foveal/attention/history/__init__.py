"""Attentions whose scores depend on the weights of earlier steps: coverage, and location addressing."""
