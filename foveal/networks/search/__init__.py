"""Decoders and encoders prepared for search: one step at a time, without gradients."""
