"""What stands around the models of the examples does what it says."""

import gzip
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from examples.support import BiLSTM, Corpus, Numbering, Token, span_f1, spans, spelling


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-NP I-NP O B-VP", {(0, 2, "NP"), (3, 4, "VP")}),
        ("B-NP B-NP I-NP", {(0, 1, "NP"), (1, 3, "NP")}),
        ("O I-NP I-NP", {(1, 3, "NP")}),  # begins without a B: a chunk all the same
        ("B-NP I-VP O", {(0, 1, "NP"), (1, 2, "VP")}),  # the type changes: a new chunk
        ("O O", set()),
    ],
)
def test_spans(tags: str, expected: set[tuple[int, int, str]]) -> None:
    assert spans(tags.split()) == expected


def test_span_f1_counts_chunks_whose_bounds_and_type_are_right() -> None:
    tags = Numbering()
    gold = torch.tensor([[tags[tag] for tag in ("B-NP", "I-NP", "O", "B-VP")]])
    predicted = torch.tensor([[tags[tag] for tag in ("B-NP", "I-NP", "B-VP", "O")]])
    assert span_f1([(gold, gold)], tags) == 100
    assert span_f1([(predicted, gold)], tags) == 50  # one right, two predicted, two gold


def test_spelling() -> None:
    assert spelling("Boeing-747") == ["word boeing-747", "boe-", "-747", "shape Aa-0"]


def test_the_bilstm_is_that_of_torch_on_packed_sequences() -> None:
    ours, theirs = BiLSTM(3, 5), nn.LSTM(3, 5, batch_first=True, bidirectional=True)
    for suffix, direction in (("", ours.forth[0]), ("_reverse", ours.back[0])):
        for name, parameter in direction.named_parameters():
            parameter.data.copy_(theirs.get_parameter(name + suffix))
    inputs, lengths = torch.randn(4, 6, 3), torch.tensor([6, 1, 3, 5])
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(theirs(packed)[0], batch_first=True)
    real = torch.arange(6) < lengths[:, None]
    assert torch.allclose(ours(inputs, lengths)[real], expected[real], atol=1e-6)


def test_a_corpus_numbers_the_features_of_its_training_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOVEAL_DATA", str(tmp_path))
    (tmp_path / "train.gz").write_bytes(gzip.compress(b"# a comment\na 1\nb 0\n\na 2\n\n"))
    (tmp_path / "test.gz").write_bytes(gzip.compress(b"b 1\nc 1\na 0\n"))

    def token(line: str) -> Token | None:
        name, label = line.split()[:2]
        return None if name == "#" else ([name], int(label))

    corpus = Corpus.read("train.gz", "test.gz", token, cut=None)
    assert corpus.num_features == 3
    (batch,) = corpus.batches("test")
    assert batch.features.tolist() == [[[2], [0], [1]]]  # "c" is unknown
    (batch,) = corpus.batches("train")
    assert sorted(batch.labels.tolist()) == [[1, 0], [2, -1]]
    assert sorted(batch.mask.tolist()) == [[True, False], [True, True]]
