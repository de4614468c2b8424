"""`python -m foveal.cli`, for launchers that start a module: torchrun -m foveal.cli fit ..."""

from ._main import main

if __name__ == "__main__":
    main()
