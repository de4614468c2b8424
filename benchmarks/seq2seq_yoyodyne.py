"""yoyodyne's soft-attention LSTM as a peer of search, with random weights.

Reference: Gorman et al., yoyodyne 0.5: small-vocabulary sequence-to-sequence generation. The library
is in a separate dependency group, `toolkits`, and is imported only on demand; see docs/benchmarks.md for
its installation.
"""

import importlib
import logging
import warnings
from typing import Any, final

import torch
from torch import Tensor

PACKAGE = "yoyodyne"
END = 3


class ToolkitMissingError(ImportError):
    """A toolkit to compare with is not installed."""


@final
class Yoyodyne:
    """A bidirectional LSTM encoder, attention and an LSTM decoder of one size, and its two searches.

    The end token has a score that is never chosen: every output has `max_length` tokens, for any weights.
    """

    def __init__(self, *, vocabulary: int, embedding: int, hidden: int, max_length: int) -> None:
        models, self._data = load_toolkit("yoyodyne.models"), load_toolkit("yoyodyne.data")
        modules = load_toolkit("yoyodyne.models.modules")
        # Its `validating` needs a trainer, which a model that only predicts does not have.
        kind: Any = type(
            "Predicting", (models.SoftAttentionLSTMModel,), {"validating": False, "trainer": None}
        )
        self._model = kind(
            source_encoder=modules.LSTMEncoder(
                dropout=0.0, embedding_size=embedding, hidden_size=hidden
            ),
            compute_accuracy=False,
            decoder_dropout=0.0,
            decoder_hidden_size=hidden,
            embedding_size=embedding,
            max_target_length=max_length,
            target_vocab_size=vocabulary,
            vocab_size=vocabulary,
        ).eval()
        with torch.no_grad():
            self._model.classifier.bias[END] = -1e9

    def search(self, tokens: Tensor, width: int) -> Tensor:
        """Return the best output of each item: (B, T)."""
        self._model.beam_width = width
        batch = self._data.Batch(self._data.PaddedTensor.from_tensor(tokens))
        with torch.inference_mode():
            found = self._model.predict_step(batch, 0)
        return found if width == 1 else found[0][:, 0]


def load_toolkit(module: str) -> Any:
    """Import a module of a toolkit, which is untyped, or raise an error with install instructions."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of its dependencies
            found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ToolkitMissingError(
            f"The benchmark needs {module} and what it stands on, and found no {error.name}. Install "
            f"it without its dependencies: pip install --no-deps -c constraints.txt --group toolkits"
        ) from error
    logging.getLogger("lightning").setLevel(logging.ERROR)
    return found
