"""Images and frames: decode bytes to pixels, within limits of size."""
