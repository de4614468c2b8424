"""A Transformer decoder: masked self-attention and attention to the memory."""
