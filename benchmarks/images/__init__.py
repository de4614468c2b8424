"""The experiments on images and clips: kinds of attention beside each other."""
