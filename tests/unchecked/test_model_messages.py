"""Models raise clear errors for shapes that do not fit; under shape checking, that check comes
first.
"""

import pytest
import torch

from foveal.errors import ShapeError
from foveal.models import (
    ClassifierSpec,
    DecomposableAttentionSpec,
    LanguageModelSpec,
    MemoryNetworkSpec,
    Seq2SeqSpec,
)


def tokens(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.long)


def mask(*shape: int) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.bool)


CASES = [
    (
        lambda: Seq2SeqSpec().build(source_vocabulary=9, target_vocabulary=9)(
            tokens(2, 4), mask(2, 3), tokens(2, 3)
        ),
        r"Seq2Seq: the mask of source must have its shape \(2, 4\), got \(2, 3\).*lengths, 4\)",
    ),
    (
        lambda: Seq2SeqSpec().build(source_vocabulary=9, target_vocabulary=9)(
            tokens(2, 4), None, tokens(2, 3), mask(2, 4)
        ),
        r"Seq2Seq: the mask of tokens must have its shape \(2, 3\), got \(2, 4\)",
    ),
    (
        lambda: Seq2SeqSpec().build(source_vocabulary=9, target_vocabulary=9)(
            tokens(1, 4), None, tokens(2, 3)
        ),
        r"must be equal, got source \(1,\), tokens \(2,\). Give one row of each",
    ),
    (
        lambda: LanguageModelSpec().build(vocabulary=9)(tokens(2, 3), mask(3, 2)),
        r"LanguageModel: the mask of tokens must have its shape \(2, 3\), got \(3, 2\)",
    ),
    (
        lambda: ClassifierSpec().build(vocabulary=9, num_classes=2)(tokens(2, 3), mask(2)),
        r"Classifier: the mask of tokens must have its shape \(2, 3\), got \(2,\)",
    ),
    (
        lambda: DecomposableAttentionSpec().build(vocabulary=9, num_classes=2)(
            tokens(2, 3), None, tokens(3, 3), None
        ),
        r"DecomposableAttention: .* must be equal, got first \(2,\), second \(3,\)",
    ),
    (
        lambda: MemoryNetworkSpec().build(vocabulary=9, num_answers=2)(
            tokens(2, 3, 4), None, tokens(3, 3), None
        ),
        r"MemoryNetwork: .* must be equal, got facts \(2,\), question \(3,\)",
    ),
]


@pytest.mark.parametrize(("call", "text"), CASES)
def test_the_message_says_what_to_do(call: object, text: str) -> None:
    assert callable(call)
    with pytest.raises(ShapeError, match=text):
        call()
