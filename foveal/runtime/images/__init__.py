"""Files of images as pixels."""
