"""Bundles: a model saved as a folder with a manifest and checksums, and warm starts from a saved model."""

from ._bundle import load_bundle as load_bundle, save_bundle as save_bundle
