"""Encoders from Hugging Face, tested with tiny models that have random weights and need no
download.
"""

import sys

import pytest
import torch

from foveal.attention import Layout
from foveal.errors import MissingPackageError
from foveal.networks import HuggingFaceImageEncoder, HuggingFaceTextEncoder
from foveal.testing import check_encoder

transformers = pytest.importorskip("transformers")

SIZES = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def test_a_text_model_is_an_encoder() -> None:
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=9, max_position_embeddings=16, **SIZES)
    model = transformers.AutoModel.from_config(config, add_pooling_layer=False)
    encoder = HuggingFaceTextEncoder(model)
    assert encoder.value_size == 8
    encoder.eval()
    tokens, mask = torch.randint(9, (2, 6)), torch.tensor([[0, 1, 0, 1, 1, 0], [1] * 6]).bool()
    memory = encoder(tokens, mask)
    alone = encoder(tokens[:1, mask[0]])
    torch.testing.assert_close(memory.values[0, mask[0]], alone.values[0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        memory.values[1:],
        model(input_ids=tokens[1:]).last_hidden_state,
        rtol=1e-5,
        atol=1e-5,
    )


def test_a_text_encoder_from_elsewhere_obeys_the_laws() -> None:
    torch.manual_seed(1)
    config = transformers.DistilBertConfig(
        vocab_size=9, dim=8, n_layers=1, n_heads=2, hidden_dim=16, max_position_embeddings=16
    )
    encoder = HuggingFaceTextEncoder(transformers.AutoModel.from_config(config))
    check_encoder(encoder, torch.randint(9, (4, 5)), (4, 5))


def test_of_an_encoder_decoder_the_encoder_is_taken() -> None:
    torch.manual_seed(2)
    config = transformers.T5Config(
        vocab_size=9, d_model=8, d_kv=4, d_ff=16, num_layers=1, num_heads=2
    )
    encoder = HuggingFaceTextEncoder(transformers.AutoModel.from_config(config))
    memory = encoder(torch.randint(9, (2, 3, 5)))
    assert memory.values.shape == (2, 3, 5, 8)


def test_a_vision_backbone_is_an_encoder() -> None:
    torch.manual_seed(3)
    config = transformers.ResNetConfig(
        num_channels=3,
        embedding_size=4,
        hidden_sizes=[4, 6],
        depths=[1, 1],
        layer_type="basic",
        out_features=["stage2"],
    )
    backbone = transformers.AutoBackbone.from_config(config)
    encoder = HuggingFaceImageEncoder(backbone)
    encoder.eval()
    memory = encoder(torch.randn(2, 3, 32, 48))
    assert encoder.value_size == 6
    assert memory.layout == Layout("grid", 4, 6)
    assert memory.values.shape == (2, 24, 6)
    images, mask = torch.randn(2, 3, 32, 48), torch.ones(2, 32, 48, dtype=torch.bool)
    mask[1, 16:] = False
    clean = encoder(images.masked_fill(~mask.unsqueeze(1), 0.0), mask)
    junk = encoder(images.masked_fill(~mask.unsqueeze(1), torch.nan), mask)
    assert torch.equal(junk.values, clean.values)
    assert clean.mask is not None
    assert clean.mask.sum(-1).tolist() == [24, 12]


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    for encoder in (HuggingFaceTextEncoder, HuggingFaceImageEncoder):
        with pytest.raises(MissingPackageError, match=r"pip install '\.\[hf\]'"):
            encoder.from_pretrained("any")
