"""Decoders: recurrent networks that generate one token after another."""
