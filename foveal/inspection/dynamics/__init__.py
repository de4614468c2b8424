"""Recurrent networks as dynamical systems: gradients over distance, and the flow of states."""
