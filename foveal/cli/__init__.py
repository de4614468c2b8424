"""The command line: one short file for each command, started by `main`."""

from ._main import main as main
