"""Computing in a process of its own, beside the one that reads and writes."""
