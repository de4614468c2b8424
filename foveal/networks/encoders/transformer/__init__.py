"""A Transformer encoder: positions and layers of multi-head self-attention."""
