"""How a model came to one answer: explanations that tasks give."""
