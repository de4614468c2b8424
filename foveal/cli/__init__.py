"""The command line: one short file for each command, under the thin frame of `main`."""

from ._main import main as main
