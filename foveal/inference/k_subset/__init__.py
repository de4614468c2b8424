"""Subsets of k elements."""
