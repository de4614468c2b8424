"""Cells, layers and stacks of recurrent networks."""
