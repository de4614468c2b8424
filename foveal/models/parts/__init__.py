"""Specs of the parts of models: recurrent stacks, encoders, decoders, attentions, scorers."""
