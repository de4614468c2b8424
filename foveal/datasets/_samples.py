"""The samples: small data sets that ship with the package, free to use and to pass on."""

import shutil
from pathlib import Path

from ..errors import DataError

_FOLDER = Path(__file__).parent / "samples"
NAMES = (
    *("pronunciation", "names", "commands", "formulas", "stories", "scenes", "text"),
    *("inflection", "trees", "pairs", "reviews"),
)


def sample(name: str) -> Path:
    """Return the folder of a sample.

    Args:
        name: "pronunciation" (English words to phonemes), "names" (names to katakana), "commands" (commands to
            actions), "formulas" (prefix to infix notation), "stories" (questions about facts), "scenes" (images,
            captions and questions), "text" (plain text), "inflection" (lemmas, forms and features), "trees"
            (sentences with tags and dependency trees), "pairs" (entailment) or "reviews" (documents and labels).

    Returns:
        A folder with a training, a validation and a test file: train, dev and test.

    Raises:
        DataError: There is no sample of this name.

    Examples:
        >>> from foveal.data import tsv
        >>> next(iter(tsv(sample("pronunciation") / "train.tsv"))).target
        'F IH SH'
    """
    if name not in NAMES:
        raise DataError(
            f"sample: expected one of {', '.join(NAMES)}, got {name!r}. Use one of these names."
        )
    return _FOLDER / name


def copy_samples(names: tuple[str, ...], out: Path) -> list[Path]:
    """Copy samples into a folder, each into a separate folder, with their license texts. Returns the folders."""
    copied: list[Path] = []
    for name in names or NAMES:
        shutil.copytree(sample(name), out / name, dirs_exist_ok=True)
        copied.append(out / name)
    shutil.copyfile(_FOLDER / "README.md", out / "README.md")
    return copied
