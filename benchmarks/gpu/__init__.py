"""The Triton kernels: compiled for GPUs that this machine does not have, predicted, and measured on a GPU.

python -m benchmarks.gpu            check and measure the kernels; needs a GPU
python -m benchmarks.gpu compile    compile all kernels for four GPUs, and check registers and memory
python -m benchmarks.gpu predict    predict the times on an A100 and an H100; needs neither
"""
