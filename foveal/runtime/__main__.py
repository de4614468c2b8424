"""`python -m foveal_runtime FOLDER`: the command `foveal-run`."""

from ._command import main

main()
