"""Latent attention that is summed out: the model learns, and finds the true alignment."""

import pytest
import torch
from torch import Tensor

from foveal.decoding import greedy
from foveal.models import (
    DecoderSpec,
    LatentHardSpec,
    LatentMonotoneSpec,
    Seq2Seq,
    Seq2SeqSpec,
    TextEncoderSpec,
)
from foveal.networks import LatentDecoder

pytestmark = pytest.mark.slow

BEGIN, END = 0, 1
# The sounds of four letters; one letter repeats its sound, and one has two sounds.
SOUNDS = {0: [2], 1: [3], 2: [4, 4], 3: [5, 6]}


def words(count: int, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return words of four letters, their sounds and an end, the letter of each sound, and a mask."""
    letters = torch.randint(4, (count, 4), generator=torch.Generator().manual_seed(seed))
    sounds = torch.full((count, 9), END)
    places, mask = torch.full((count, 9), -1), torch.zeros(count, 9, dtype=torch.bool)
    for number, word in enumerate(letters.tolist()):
        said = [(sound, place) for place, letter in enumerate(word) for sound in SOUNDS[letter]]
        sounds[number, : len(said)] = torch.tensor([sound for sound, _ in said])
        places[number, : len(said)] = torch.tensor([place for _, place in said])
        mask[number, : len(said) + 1] = True
    return letters, sounds, places, mask


def taught(attention: LatentHardSpec | LatentMonotoneSpec) -> tuple[Seq2Seq, float, float]:
    """Return a model after some steps, with its first and its last loss."""
    torch.manual_seed(0)
    model = Seq2SeqSpec(
        encoder=TextEncoderSpec(embedding_size=8, hidden_size=12),
        decoder=DecoderSpec(embedding_size=8, hidden_size=24, attention=attention, bridge="none"),
    ).build(source_vocabulary=4, target_vocabulary=7)
    letters, sounds, _, mask = words(160, seed=0)
    tokens = torch.cat([torch.full((160, 1), BEGIN), sounds[:, :-1]], -1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    losses = []
    for _ in range(100):
        scored = model.score(letters, None, tokens, sounds, mask, label_smoothing=0.05)
        optimizer.zero_grad()
        scored.loss.sum().div(mask.sum()).backward()
        optimizer.step()
        losses.append(float(-scored.log_prob.sum() / mask.sum()))
    return model.eval(), losses[0], losses[-1]


@pytest.mark.parametrize(
    "attention", [LatentHardSpec(), LatentMonotoneSpec()], ids=lambda a: a.kind
)
def test_a_model_learns_to_say_words_and_where_each_sound_comes_from(
    attention: LatentHardSpec | LatentMonotoneSpec,
) -> None:
    model, first, last = taught(attention)
    assert last < 0.15 * first
    letters, sounds, places, mask = words(32, seed=1)
    stepper = model.stepper()
    state, begin = model.start(letters), torch.full((32,), BEGIN)
    found = greedy(stepper, state, begin=begin, end=END, max_length=9).token_lists(END)
    expected = [row[real][:-1].tolist() for row, real in zip(sounds, mask, strict=True)]
    right = sum(a[0] == b for a, b in zip(found, expected, strict=True))
    assert right >= 30
    assert isinstance(model.decoder, LatentDecoder)
    tokens = torch.cat([begin.unsqueeze(1), sounds[:, :-1]], -1)
    best = model.decoder.best_alignment(tokens, sounds, model.encode(letters), mask)
    spoken = places >= 0
    assert (best[~mask] == -1).all()
    assert (best[spoken] == places[spoken]).float().mean() > 0.7
