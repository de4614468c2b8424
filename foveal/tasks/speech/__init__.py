"""Tasks whose input is a recording of speech."""
