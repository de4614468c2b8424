"""Computing in a separate process, next to the process that handles requests."""
