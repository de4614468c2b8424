"""File formats: each reads lines or files and yields examples."""
