"""Images and frames: bytes to pixels, within limits."""
