"""ONNX graphs of the parts of a model, from the operators of a graph up to encoders, decoders and the search."""
