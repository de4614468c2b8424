"""Events of a run and their listeners: display, log, curves, TensorBoard."""
