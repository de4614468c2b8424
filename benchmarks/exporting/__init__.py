"""Exports compared with their originals: answers, size, speed and memory."""
