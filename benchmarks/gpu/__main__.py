"""Runs one of the commands of `benchmarks.gpu`."""

import argparse
import sys

COMMANDS = ("measure", "compile", "predict")


def main() -> int:
    """Parse the command and run it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("command", nargs="?", choices=COMMANDS, default="measure")
    command = parser.parse_args().command
    if command == "compile":
        from . import compiling  # noqa: PLC0415 - the commands need different packages

        return compiling.main()
    if command == "predict":
        from . import predicting  # noqa: PLC0415

        return predicting.main()
    from . import measuring  # noqa: PLC0415

    return measuring.main()


if __name__ == "__main__":
    sys.exit(main())
