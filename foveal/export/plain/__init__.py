"""The plain model file: a model from text to text for engines without ONNX Runtime.

`runtimes/plain_format.md` describes the file; `runtimes/c` reads it.
"""

from ._model import PLAIN as PLAIN, plain_body as plain_body, plain_file as plain_file
