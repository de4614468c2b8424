"""Tasks whose input is a picture or a clip."""
