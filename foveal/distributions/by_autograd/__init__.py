"""Distributions given only by their log-partition: autograd computes the rest."""
