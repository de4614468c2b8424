"""Self-attentive encoders and the self-attention of words match their equations."""

import pytest
import torch
from torch import nn

from foveal.attention import segment_attention, softmax_attention, syntactic_attention
from foveal.distributions import ProjectiveTree
from foveal.errors import ShapeError
from foveal.networks import (
    RecurrentStack,
    SelfAttentiveEncoder,
    TextEncoder,
    WordEncoder,
    recurrent_stack,
)
from foveal.testing import check_encoder


def words() -> WordEncoder:
    return WordEncoder(nn.Embedding(9, 4))


def text() -> TextEncoder:
    return TextEncoder(nn.Embedding(9, 4), recurrent_stack(4, 3, bidirectional=True))


def stack() -> RecurrentStack:
    return recurrent_stack(4, 3, bidirectional=True)


ENCODERS = {
    "words": words,
    "words, softmax": lambda: SelfAttentiveEncoder(words(), softmax_attention(4, 4)),
    "words, tree": lambda: SelfAttentiveEncoder(words(), syntactic_attention(4, 4, 5)),
    "words, tree over states": lambda: SelfAttentiveEncoder(
        words(), syntactic_attention(6, 4, 5, key_size=6), stack()
    ),
    "text, tree": lambda: SelfAttentiveEncoder(text(), syntactic_attention(6, 6, 5)),
    "text, segment": lambda: SelfAttentiveEncoder(text(), segment_attention(6, 6)),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_obeys_the_laws(name: str) -> None:
    torch.manual_seed(0)
    check_encoder(ENCODERS[name](), torch.randint(9, (4, 5)), (4, 5))


def test_a_word_carries_its_expected_head() -> None:
    """Each word gets the expected head: values = [x; sum over h of p(h is the head) x_h + p(root)
    r].
    """
    torch.manual_seed(0)
    encoder = SelfAttentiveEncoder(
        words(), syntactic_attention(6, 4, 5, key_size=6), stack()
    ).eval()
    tokens = torch.randint(9, (2, 5))
    memory, attended = encoder(tokens), encoder.attend(tokens)
    embedded = encoder.encoder(tokens).values
    assert isinstance(attended.distribution, ProjectiveTree)
    heads = attended.distribution.marginals()[:, :, 1:]  # (B, 1 + n heads, n words)
    root = encoder.attention.get_parameter("reader.root")
    with_root = torch.cat([root.expand(2, 1, -1), embedded], 1)
    expected = torch.einsum("bhd,bhv->bdv", heads, with_root)
    torch.testing.assert_close(memory.values, torch.cat([embedded, expected], -1))
    torch.testing.assert_close(memory.summary, embedded.mean(1))
    assert (encoder.value_size, encoder.summary_size) == (8, 4)


def test_words_do_not_know_their_neighbors() -> None:
    encoder = words().eval()
    together = encoder(torch.tensor([[1, 2, 3]])).values[0, 1]
    torch.testing.assert_close(encoder(torch.tensor([[2]])).values[0, 0], together)


def test_the_stack_reads_the_values() -> None:
    with pytest.raises(ShapeError, match=r"input_size 4, the width of the encoder's values, got 6"):
        SelfAttentiveEncoder(words(), softmax_attention(6, 6), recurrent_stack(6, 3))
