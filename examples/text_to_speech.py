"""Text to speech: a recurrent decoder writes log-mel frames, and attention moves through the characters.

    h_t = LSTM( h_{t-1}, [last frame; context_{t-1}] )
    place_t = place_{t-1} + softplus(a . h_t + b)             the place in the text only moves forward
    weights_t = softmax over s of -sharpness_t (place_t - s)^2
    context_t = sum over s of weights_t[s] values[s]          values: a BiLSTM over the characters
    frames_t, stop_t = linear in LSTM( [h_t; context_t] )     four frames of 12.5 ms at each step

Training minimizes the mean absolute error of the frames, given the true frames before them, and the cross-entropy of
stopping. `invert_log_mel` makes samples from frames. The phrases are strings of digits; the text is their characters.

A recognizer that was trained on recordings of ten speakers measures how intelligible the result is. It reads three kinds
of recordings of phrases that training never saw: real ones, from takes that neither network read; the same after
`invert_log_mel`; and synthesized ones.

Data: AudioMNIST (Becker et al. 2018; MIT license), recordings of digits at 8 kHz.
References: Graves 2013, section 5.1 (attention that moves forward); Wang et al. 2017 (Tacotron).

Run: python examples/text_to_speech.py [--updates 400] [--seed 0] [--out FOLDER]
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch
from jaxtyping import Float
from PIL import Image
from support.speech import (
    AUDIO,
    Phrase,
    Recording,
    draw_phrase,
    read_recordings,
    record,
    train_recognizer,
    warped_distance,
    word_error_rate,
    write_recordings,
)
from support.texts import Descent
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, pad, softplus
from torch.nn.utils.rnn import pad_sequence
from typing_extensions import override

from foveal.attention import (
    AbstractScorer,
    Attention,
    AttentionTrace,
    ExpectedValue,
    Memory,
    per_query,
)
from foveal.data import invert_log_mel, log_mel
from foveal.distributions import Categorical
from foveal.masking import mask_from_lengths
from foveal.networks import CellState, LSTMCell, StackState, TextEncoder, recurrent_stack
from foveal.views import heatmap

VOICE, OTHERS = "12", ("01", "03", "07", "19", "26", "28", "36", "43", "47")
KNOWN, UNSEEN = slice(0, 4), slice(4, 5)  # takes of a word
LONGEST = 4  # words of a training phrase
FRAMES = 4  # frames of a step
QUIET, SCALE = -40.0, 20.0  # decibels: the floor of frames, and a value of 1 above it
CHARACTERS = ".abcdefghijklmnopqrstuvwxyz "  # number 0 is also padding
LEAST = 0.5  # sharpness: with less, attention would read the whole text at once
MOST = 30  # steps for each word, for a phrase that does not stop


def text_of(phrase: Phrase) -> str:
    """Return the text that the synthesizer reads."""
    return f" {' '.join(phrase)}."


class Forward(AbstractScorer):
    """score = -sharpness (place - s)^2; a query is a place and a sharpness."""

    @override
    def remember(self, values: Tensor) -> Tensor:
        return torch.arange(values.shape[-2]).to(values)

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        place, sharpness = query.split(1, -1)
        return -sharpness * (place - keys).square()


class Place(NamedTuple):
    """The state after a step: the cell, the place in the text, and the context there."""

    cell: CellState
    place: Float[Tensor, "B 1"]
    context: Float[Tensor, "B V"]
    weights: Float[Tensor, "B S"]


class Written(NamedTuple):
    """The output of the decoder at some steps."""

    frames: Float[Tensor, "B T F"]
    stop: Float[Tensor, "B T"]  # logits
    state: StackState


class Speech(NamedTuple):
    """A synthesized phrase."""

    features: Float[Tensor, "N M"]  # decibels, as `log_mel` returns them
    weights: Float[Tensor, "T S"]  # of the characters, at each step


class Synthesizer(nn.Module):
    """Characters to log-mel frames."""

    def __init__(self, size: int = 160) -> None:
        super().__init__()
        layers = recurrent_stack(32, 32, bidirectional=True)
        self.encoder = TextEncoder(nn.Embedding(len(CHARACTERS), 32), layers)
        width = layers.output_size
        self.hear = nn.Sequential(nn.Linear(AUDIO.num_mels, 32), nn.ReLU(), nn.Dropout(0.5))
        self.cell = LSTMCell(32 + width, size)
        self.move = nn.Linear(size, 2)
        self.attention = Attention(
            scorer=Forward(), distribute=per_query(Categorical), reader=ExpectedValue()
        )
        self.speak = recurrent_stack(size + width, size)
        self.write = nn.Linear(size + width, FRAMES * AUDIO.num_mels + 1)
        nn.init.constant_(self.move.bias, -1.0)  # a third of a character for each step

    def read(self, phrases: Sequence[Phrase]) -> Memory:
        """Encode the characters of phrases."""
        rows = [torch.tensor(list(map(CHARACTERS.index, text_of(each)))) for each in phrases]
        tokens = pad_sequence(rows, batch_first=True)
        lengths = torch.tensor([len(row) for row in rows])
        encoded = self.encoder(tokens, mask_from_lengths(lengths, tokens.shape[1]))
        return self.attention.remember(encoded)

    def start(self, memory: Memory) -> Place:
        """Return the place before the first character."""
        size, length, width = memory.values.shape
        zero = memory.values.new_zeros(size, 1)
        return Place(self.cell.start([size]), zero, zero.expand(-1, width), zero.expand(-1, length))

    def step(self, heard: Tensor, before: Place, memory: Memory) -> Place:
        """Move on after a frame, of which `heard` are the features."""
        cell = self.cell(torch.cat([heard, before.context], -1), before.cell)
        moved, sharpness = softplus(self.move(cell.hidden)).split(1, -1)
        place = before.place + moved
        found = self.attention(torch.cat([place, LEAST + sharpness], -1).unsqueeze(1), memory)
        return Place(cell, place, found.context.squeeze(1), found.weights.squeeze(1))

    def frames(self, hidden: Tensor, context: Tensor, state: StackState | None) -> Written:
        """Compute the frames of steps, the logits of stopping, and the state after them."""
        spoken, after = self.speak(torch.cat([hidden, context], -1), None, state)
        written = self.write(torch.cat([spoken, context], -1))
        return Written(written[..., :-1], written[..., -1], after)

    def forward(self, phrases: Sequence[Phrase], frames: Float[Tensor, "B T F"]) -> Written:
        """Compute all steps, given the true frames of the steps before."""
        memory = self.read(phrases)
        last = frames[:, :-1, -AUDIO.num_mels :]
        places, place = list[Place](), self.start(memory)
        for heard in self.hear(pad(last, (0, 0, 1, 0))).unbind(1):
            place = self.step(heard, place, memory)
            places.append(place)
        hidden = torch.stack([each.cell.hidden for each in places], 1)
        return self.frames(hidden, torch.stack([each.context for each in places], 1), None)

    @torch.no_grad()
    def say(self, phrase: Phrase) -> Speech:
        """Write the frames of a phrase, until the network stops."""
        memory = self.read([phrase])
        place, last, state = self.start(memory), torch.zeros(1, AUDIO.num_mels), None
        frames, weights = list[Tensor](), list[Tensor]()
        for _ in range(MOST * len(phrase)):
            place = self.step(self.hear(last), place, memory)
            hidden = place.cell.hidden
            written, stop, state = self.frames(hidden[:, None], place.context[:, None], state)
            frames.append(written.view(FRAMES, -1))
            weights.append(place.weights[0])
            last = frames[-1][-1:]
            if stop > 0:
                break
        return Speech(torch.cat(frames) * SCALE + QUIET, torch.stack(weights))


def features(recording: Recording) -> Float[Tensor, "N M"]:
    """Return the log-mel frames of a recording, with a floor."""
    return log_mel(recording.samples, AUDIO).clamp(min=QUIET)


def batches(
    known: Sequence[Recording], number: int, chance: Random
) -> Iterator[tuple[list[Phrase], Tensor, Tensor]]:
    """Yield phrases of equally many words, with their frames by steps and the number of steps of each.

    The first half of the batches has single words, from which the network learns to read; then the phrases grow.
    """
    groups: dict[int, list[tuple[Phrase, Tensor]]] = {}
    for recording in known:
        frames = (features(recording) - QUIET) / SCALE
        frames = pad(frames, (0, 0, 0, -len(frames) % FRAMES)).view(-1, FRAMES * AUDIO.num_mels)
        groups.setdefault(len(recording.phrase), []).append((recording.phrase, frames))
    for batch in range(number):
        longest = 1 + int(LONGEST * (batch / number) ** 2)
        chosen = chance.choices(groups[chance.randint(1, longest)], k=32)
        lengths = torch.tensor([len(frames) for _, frames in chosen])
        padded = pad_sequence([frames for _, frames in chosen], batch_first=True)
        yield [phrase for phrase, _ in chosen], padded, lengths


def train(known: Sequence[Recording], num_updates: int, seed: int) -> Synthesizer:
    """Train a synthesizer on recordings."""
    model = Synthesizer()
    descent = Descent(model, learning_rate=4e-3, num_steps=num_updates)
    drawn = batches(known, num_updates, Random(seed))
    for update, (phrases, frames, lengths) in enumerate(drawn, 1):
        mask = mask_from_lengths(lengths, frames.shape[1])
        written = model(phrases, frames)
        wrong = (written.frames - frames).abs()[mask].mean()
        last = (torch.arange(frames.shape[1]) == lengths[:, None] - 1).float()
        stopping = binary_cross_entropy_with_logits(written.stop[mask], last[mask])
        loss = descent.step(wrong + stopping)
        if update % max(1, num_updates // 10) == 0:
            print(f"update {update}, loss {loss:.3f}", flush=True)
    return model.eval()


def recordings_of_others(chance: Random) -> Iterator[Recording]:
    """Yield phrases by other speakers, for the recognizer."""
    for speaker in OTHERS:
        recordings = read_recordings(speaker)
        for _ in range(60):
            yield record(draw_phrase(chance, 1, LONGEST), recordings, KNOWN, chance)


def voiced(phrase: Phrase, frames: Float[Tensor, "N M"]) -> Recording:
    """Return the recording of a phrase that is made from frames."""
    samples = invert_log_mel(frames, AUDIO)
    return Recording(phrase, 0.5 * samples / samples.abs().max())


def measure_spectrograms(
    unseen: Sequence[Recording], again: Sequence[Recording], spoken: Sequence[Speech]
) -> None:
    """Print the distances of spectrograms from the true ones after time warping, next to baselines."""
    truth, written = [features(each) for each in unseen], [each.features for each in spoken]
    average = torch.cat(truth).mean(0, keepdim=True)
    compared = {
        "synthesized": written,
        "other takes of the same words": [features(each) for each in again],
        "synthesized, another phrase": [*written[1:], written[0]],
        "the mean frame": [average] * len(truth),
    }
    found = dict[str, float]()
    for name, others in compared.items():
        pairs = zip(truth, others, strict=True)
        found[name] = sum(warped_distance(*pair) for pair in pairs) / len(truth)
        print(f"spectral distance, {name}: {found[name]:.2f} dB")
    assert found["synthesized"] < found["the mean frame"], "it should write more than the mean"
    ended = sum(int(each.weights[-1].argmax()) >= each.weights.shape[1] - 2 for each in spoken)
    print(f"phrases that end at the end of the text: {100 * ended / len(spoken):.1f} %")


def save(folder: Path, speech: Speech, recording: Recording) -> None:
    """Write a synthesized phrase as a recording, its attention, and its spectrogram next to the true one."""
    print("written to", write_recordings(folder, [voiced(recording.phrase, speech.features)]))
    text = tuple(text_of(recording.phrase))
    steps = tuple(str(step) for step in range(len(speech.weights)))
    weights = tuple(map(tuple, speech.weights.tolist()))
    trace = AttentionTrace(kind="softmax", sources=text, targets=steps, weights=weights)
    (folder / "attention.svg").write_text(heatmap(trace), encoding="utf-8")
    both = [speech.features, features(recording)]
    levels = pad_sequence(both, batch_first=True, padding_value=QUIET).flip(2).transpose(1, 2)
    levels = ((levels - QUIET) / (levels.max() - QUIET)).clamp(min=0).mul(255).byte()
    Image.fromarray(levels.flatten(0, 1).numpy()).save(folder / "spectrograms.png")


def main() -> None:
    """Train a synthesizer and a recognizer, and measure phrases that neither has seen."""
    options = parse_options()
    chance, voice = Random(options.seed), read_recordings(VOICE)
    phrases = [draw_phrase(chance, LONGEST, LONGEST) for _ in range(25)]
    longer = [draw_phrase(chance, 2 * LONGEST, 2 * LONGEST) for _ in range(10)]
    drawn = (draw_phrase(chance, 1, LONGEST) for _ in range(800))
    known = [record(each, voice, KNOWN, chance) for each in drawn if each not in phrases]
    unseen = [record(each, voice, UNSEEN, chance) for each in phrases]
    again = [record(each, voice, KNOWN, chance) for each in phrases]

    model = train(known, options.updates, options.seed)
    spoken = [model.say(phrase) for phrase in phrases]
    measure_spectrograms(unseen, again, spoken)
    if options.out:
        save(options.out, spoken[0], unseen[0])

    kinds = {
        "recorded": unseen,
        "recorded and inverted": [voiced(each.phrase, features(each)) for each in unseen],
        "synthesized": [
            voiced(phrase, each.features) for phrase, each in zip(phrases, spoken, strict=True)
        ],
        "synthesized, twice as long": [voiced(each, model.say(each).features) for each in longer],
    }
    heard = [*known[:100], *recordings_of_others(chance)]
    with TemporaryDirectory() as folder:
        recognizer = train_recognizer(Path(folder), heard, 3 * options.updates, options.seed)
        for kind, recordings in kinds.items():
            errors = word_error_rate(recognizer, Path(folder) / kind, recordings)
            print(f"word errors, {kind}: {errors:.1f} %")


def parse_options() -> argparse.Namespace:
    """Read the command line, seed torch, and use one thread: a step is too small for more."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=400, help="batches to train on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="new folder for a recording and pictures")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    return options


if __name__ == "__main__":
    main()
