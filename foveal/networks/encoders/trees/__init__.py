"""Recursive networks along binary trees over texts."""
