"""One answer explained: what was read, what else could have been said, and what is needed of it."""
