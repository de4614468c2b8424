"""Export: a trained model as ONNX graphs and plain files, which run without torch."""
