"""The C library through ctypes, built with the compiler of this machine."""

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

SOURCES = Path(__file__).resolve().parents[2] / "runtimes/c"


class _Options(ctypes.Structure):
    _fields_ = (
        ("beam_size", ctypes.c_int),
        ("nbest", ctypes.c_int),
        ("length_penalty", ctypes.c_double),
        ("max_length", ctypes.c_int),
        ("attention", ctypes.c_int),
    )


class _Error(ctypes.Structure):
    _fields_ = (("message", ctypes.c_char * 400),)


class _Candidate(ctypes.Structure):
    _fields_ = (
        ("output", ctypes.c_char_p),
        ("output_size", ctypes.c_size_t),
        ("score", ctypes.c_float),
        ("confidence", ctypes.c_double),
    )


class _Answer(ctypes.Structure):
    _fields_ = (
        ("num_candidates", ctypes.c_size_t),
        ("candidates", ctypes.POINTER(_Candidate)),
    )


@final
class CModel:
    """A loaded `model.plain`.

    Args:
        folder: The exported folder.
        library: Path of the library, which is built if it does not exist.
    """

    def __init__(self, folder: Path, library: Path) -> None:
        if not library.exists():
            build(library)
        self._library = found = ctypes.CDLL(str(library))
        found.foveal_load_file.restype = ctypes.c_void_p
        found.foveal_predict.restype = ctypes.POINTER(_Answer)
        found.foveal_predict.argtypes = (
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.POINTER(_Options),
            ctypes.POINTER(_Error),
        )
        found.foveal_answer_free.argtypes = (ctypes.POINTER(_Answer),)
        found.foveal_self_test.argtypes = (ctypes.c_void_p, ctypes.POINTER(_Error))
        self._error = _Error()
        model = found.foveal_load_file(str(folder).encode(), ctypes.byref(self._error))
        self._model = ctypes.c_void_p(self._checked(model))

    def predict(self, texts: Sequence[tuple[str, str]], beam_size: int) -> list[str]:
        """Return the best output of each pair of a text and its features."""
        options, found = _Options(beam_size, 1, 0.0, 0, 0), list[str]()
        for text, features in texts:
            answer = self._checked(
                self._library.foveal_predict(
                    self._model,
                    text.encode(),
                    features.encode(),
                    ctypes.byref(options),
                    ctypes.byref(self._error),
                )
            )
            found.append(answer.contents.candidates[0].output.decode())
            self._library.foveal_answer_free(answer)
        return found

    def self_test(self) -> int:
        """Return the number of stored examples, which all have the stored answer; -1 if one has another."""
        return self._library.foveal_self_test(self._model, ctypes.byref(self._error))

    def _checked(self, found: Any) -> Any:
        if not found:
            raise RuntimeError(self._error.message.decode())
        return found


def build(library: Path) -> None:
    """Compile the library with the options of its Makefile."""
    objects = library.with_name(f"{library.stem}.objects")
    archive = objects / "libfoveal.a"
    settings = (f"BUILD={objects}", "CFLAGS=-O3 -fPIC")
    subprocess.run(["make", "-s", "-C", SOURCES, *settings, archive], check=True)
    whole = ("-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", "-lm")
    subprocess.run(["cc", "-shared", "-o", library, *whole], check=True)
