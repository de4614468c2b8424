"""The experiments on images and clips: a comparison of kinds of attention."""
