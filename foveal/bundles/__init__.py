"""A model as a folder: a manifest with checksums, saving, loading, and starting from a saved model."""

from ._bundle import load_bundle as load_bundle, save_bundle as save_bundle
