"""Pretrained models for foveal: data only. `foveal models` lists them, and commands accept their names."""
