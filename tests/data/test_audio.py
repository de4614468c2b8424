"""Recordings are converted to one rate and channel; other files are refused with an error of one line."""

import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from foveal.data import (
    Audio,
    AudioSpec,
    Example,
    Picture,
    audio_list,
    invert_log_mel,
    log_mel,
    open_source,
    read_audio,
    resample,
)
from foveal.data.audio._log_mel import spectrogram
from foveal.errors import AudioError, DataError, MissingPackageError, ShapeError, ValueRangeError

SPEC = AudioSpec(rate=8_000, num_mels=40)


def tone(rate: int, hertz: float = 500.0, seconds: float = 0.5) -> np.ndarray:
    """A sine wave with amplitude 0.5."""
    return 0.5 * np.sin(np.arange(int(rate * seconds)) * (2 * np.pi * hertz / rate))


def written(
    samples: np.ndarray, rate: int = 8_000, kind: str = "WAV", subtype: str | None = None
) -> bytes:
    """Return the bytes of a file."""
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=kind, subtype=subtype)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("kind", "channels", "precision"),
    [("WAV", 1, 2e-4), ("WAV", 6, 2e-4), ("FLAC", 2, 2e-4), ("OGG", 2, 0.05)],  # Ogg is lossy
)
@pytest.mark.parametrize("rate", [8_000, 11_025, 44_100])
def test_any_rate_and_number_of_channels_gives_the_same_samples(
    kind: str, channels: int, precision: float, rate: int
) -> None:
    samples = np.repeat(tone(rate)[:, None], channels, axis=1)
    found = read_audio(written(samples, rate, kind), SPEC)
    assert abs(len(found) - 4_000) <= 1
    middle = slice(400, 3_600)  # the filter reads silence beyond the ends
    assert np.abs(found.numpy()[middle] - tone(8_000)[middle]).max() < precision


def test_channels_are_averaged() -> None:
    samples = np.stack([np.full(100, 0.5), np.full(100, -0.25)], axis=1)
    found = read_audio(written(samples, subtype="FLOAT"), SPEC)
    assert torch.equal(found, torch.full((100,), 0.125))


@pytest.mark.parametrize(("rate", "new_rate"), [(44_100, 8_000), (16_000, 8_000), (22_051, 16_000)])
def test_frequencies_above_the_new_band_are_removed(rate: int, new_rate: int) -> None:
    high = torch.from_numpy(tone(rate, 0.6 * new_rate)).float()
    assert resample(high, rate, new_rate)[200:-200].abs().max() < 1e-3  # 54 dB less
    kept = resample(torch.from_numpy(tone(rate, 0.4 * new_rate)).float(), rate, new_rate)
    expected = torch.from_numpy(tone(new_rate, 0.4 * new_rate)).float()[: len(kept)]
    assert (kept[: len(expected)] - expected)[200:-200].abs().max() < 5e-3


def test_a_rate_must_be_positive() -> None:
    with pytest.raises(ValueRangeError, match="rates must be at least 1"):
        resample(torch.zeros(4), 0, 8_000)


@pytest.mark.parametrize("hertz", [300.0, 1_000.0, 3_000.0])
def test_a_tone_is_loudest_in_its_band(hertz: float) -> None:
    features = log_mel(torch.from_numpy(tone(8_000, hertz)).float(), SPEC)
    mels = 2595 * np.log10(1 + np.array([hertz, 4_000.0]) / 700)
    expected = mels[0] / mels[1] * (SPEC.num_mels + 1) - 1
    assert features.shape == (51, 40)
    assert abs(features[25].argmax().item() - expected) <= 0.75


def test_ten_times_the_amplitude_is_twenty_decibels_and_the_same_picture() -> None:
    noise = torch.randn(4_000, generator=torch.Generator().manual_seed(0)) * 0.01
    quiet, loud = log_mel(noise, SPEC), log_mel(10 * noise, SPEC)
    assert torch.allclose(loud - quiet, torch.full_like(loud, 20.0), atol=1e-3)
    difference = spectrogram(10 * noise, SPEC).int() - spectrogram(noise, SPEC).int()
    assert difference.abs().max() <= 1


def test_a_signal_made_from_features_has_these_features() -> None:
    """A glide with harmonics, like a voice: most bands return to within a few decibels."""
    time = np.arange(8_000) / 8_000
    phase = 2 * np.pi * np.cumsum(120 + 60 * time) / 8_000
    voice = sum(np.sin(n * phase) / n for n in range(1, 12)) * np.hanning(8_000) * 0.2
    features = log_mel(torch.from_numpy(np.asarray(voice)).float(), SPEC)
    again = log_mel(invert_log_mel(features, SPEC), SPEC)[: len(features)]
    features = features[: len(again)]
    loud = features > features.max() - 40
    assert (again - features)[loud].abs().mean() < 2.0
    silent = log_mel(torch.zeros(8_000), SPEC)[: len(again)]
    assert (silent - features)[loud].abs().mean() > 40.0  # a check that tells signals apart
    with pytest.raises(ShapeError, match="expected 40 bands, got 39"):
        invert_log_mel(features[:, :39], SPEC)


GOOD = written(tone(8_000))
SILENT_HOURS = 10 * 3600 * 8_000


def long_silence() -> bytes:
    """The header of a FLAC with ten hours of silence, which would take a megabyte as a file."""
    data = bytearray(written(np.zeros(8_000), kind="FLAC"))
    # The number of samples has 36 bits, from the middle of byte 21 of the file on.
    data[21] = data[21] & 0xF0 | SILENT_HOURS >> 32
    data[22:26] = (SILENT_HOURS & 0xFFFF_FFFF).to_bytes(4, "big")
    return bytes(data)


def with_bytes(at: int, new: bytes) -> bytes:
    """A WAV with other bytes in its header."""
    return GOOD[:at] + new + GOOD[at + len(new) :]


NOT_FINITE = np.array([0.0, np.nan, 0.5], dtype=np.float32)
REFUSED = {
    "empty": (b"", "the file is empty"),
    "text": (b"one two three", "unknown format, beginning with 6f 6e 65"),
    "mp3": (b"ID3\x04aaaaaaaa", "the file is MP3"),
    "png": (b"\x89PNG\r\n\x1a\n", "unknown format"),
    "webp": (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "unknown format"),
    "only a header": (GOOD[:12], "damaged .no samples"),
    "no samples": (written(np.zeros(0)), "no samples"),
    "truncated wav": (GOOD[:-1_001], r"damaged .6,999 of 8,000 bytes"),
    "truncated flac": (written(tone(8_000), kind="FLAC")[:-900], "damaged"),
    "huge data chunk": (with_bytes(40, b"\xf0\xff\xff\x7f"), "damaged"),
    "huge format chunk": (with_bytes(16, b"\xf0\xff\xff\x7f"), "damaged"),
    "rate of 4 billion": (with_bytes(24, b"\xff\xff\xff\xff"), "samples per second|damaged"),
    "rate of 1": (with_bytes(24, b"\x01\x00\x00\x00"), "1 samples per second"),
    "65,535 channels": (with_bytes(22, b"\xff\xff"), "channels|damaged"),
    "ten hours of silence": (long_silence(), r"36,000\.0 seconds, expected at most 60"),
    "a minute and more": (written(np.zeros(480_001)), "seconds, expected at most 60"),
    "NaN": (written(NOT_FINITE, subtype="FLOAT"), "samples up to nan, expected finite"),
    "infinite": (written(np.array([0.0, np.inf]), subtype="FLOAT"), "samples up to inf"),
    "too loud": (written(np.array([0.0, 1e30]), subtype="FLOAT"), r"samples up to 1e\+30"),
}


@pytest.mark.parametrize(("data", "expected"), REFUSED.values(), ids=REFUSED)
def test_hostile_files_are_refused_in_one_line(data: bytes, expected: str, tmp_path: Path) -> None:
    with pytest.raises(AudioError, match=expected) as refused:
        read_audio(data, SPEC)
    assert str(refused.value).startswith("the recording: ")
    assert "\n" not in str(refused.value)
    path = tmp_path / "some.wav"
    path.write_bytes(data)
    with pytest.raises(AudioError, match=r"some\.wav: "):
        read_audio(path, SPEC)


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG"])
def test_any_changed_bytes_are_read_or_refused(kind: str) -> None:
    generator = np.random.default_rng(0)
    good = written(tone(8_000, seconds=0.1), kind=kind)
    for _ in range(60):
        data = np.frombuffer(good, np.uint8).copy()
        at = generator.integers(0, min(len(data), 200), 3)
        data[at] = generator.integers(0, 256, 3)
        cut = int(generator.integers(1, len(data) + 1))
        try:
            found = read_audio(data[:cut].tobytes(), SPEC)
        except AudioError:
            continue
        assert found.isfinite().all()
        assert len(found) <= SPEC.max_seconds * SPEC.rate + 1


def test_a_wav_from_a_pipe_has_no_size() -> None:
    assert len(read_audio(with_bytes(40, b"\xff" * 4), SPEC)) == 4_000


def test_files_that_do_not_exist_or_are_too_large_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AudioError, match=r"one\.wav: does not exist, expected a recording"):
        read_audio(tmp_path / "one.wav", SPEC)
    with pytest.raises(AudioError, match="larger than 100 bytes"):
        read_audio(GOOD, AudioSpec(max_bytes=100))


def test_the_error_without_the_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    monkeypatch.setattr("foveal.extras.find_spec", lambda _: None)
    with pytest.raises(MissingPackageError, match=r"needs the package soundfile.*'\.\[audio\]'"):
        read_audio(GOOD, SPEC)


def test_a_list_of_recordings_is_found_and_read(tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_text("one.wav\tone\n\nsub/two.flac\ttwo\n")
    opened = open_source(tmp_path / "words.tsv")
    assert opened.source == audio_list(tmp_path / "words.tsv")
    assert opened.reason.startswith("names of recordings in the first column, a text in the second")
    examples = list(audio_list(tmp_path / "words.tsv"))
    assert [example.target for example in examples] == ["one", "two"]
    assert examples[1].source == Audio(tmp_path / "sub" / "two.flac")
    with zipfile.ZipFile(tmp_path / "speech.zip", "w") as archive:
        archive.writestr("one.wav", GOOD)
    packed = next(iter(audio_list(tmp_path / "words.tsv", tmp_path / "speech.zip")))
    assert len(read_audio(packed.input_as(Audio).file, SPEC)) == 4_000


@pytest.mark.parametrize("name", ["../one.wav", "/etc/one.wav", "C:\\one.wav"])
def test_a_list_cannot_name_files_elsewhere(tmp_path: Path, name: str) -> None:
    (tmp_path / "words.tsv").write_text(f"{name}\tone\n")
    with pytest.raises(DataError, match="not a path inside the folder of recordings"):
        list(audio_list(tmp_path / "words.tsv"))


def test_a_line_without_a_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_text("one.wav\n")
    with pytest.raises(DataError, match="1 columns, expected at least 2"):
        list(audio_list(tmp_path / "words.tsv"))


def test_written_forms_are_parsed() -> None:
    audio = Audio(GOOD[:60])
    assert Audio.parse(str(audio)) == audio
    assert (audio.name, Audio(Path("a/one.wav")).name) == ("recording", "one.wav")
    assert Example(Picture(Path("one.wav"))).input_as(Audio) == Audio(Path("one.wav"))
    with pytest.raises(DataError, match="expected an image, got a recording"):
        Example(audio).input_as(Picture)
