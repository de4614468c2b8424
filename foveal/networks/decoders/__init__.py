"""Decoders: recurrent networks that write one token after another."""
