"""Decoders whose attention is a latent alignment, summed out exactly."""
