"""`python -m sightline.cli`, for launchers that start a module: torchrun -m sightline.cli fit ..."""

from ._main import main

if __name__ == "__main__":
    main()
