"""supar's structured distributions without the parsers around them.

`import supar` needs a dozen packages that `supar.structs` does not use. Two empty packages instead of
`supar` and `supar.utils` make it possible to import only `supar.structs`, from a copy installed with
`pip install --no-deps supar==1.1.4`.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from .peers import PeerMissingError


def load_supar() -> Any:
    """Return the module `supar.structs`; afterwards, `from supar.structs import ...` works too."""
    if "supar.structs" in sys.modules:
        return sys.modules["supar.structs"]
    found = importlib.util.find_spec("supar")
    if found is None or not found.submodule_search_locations:
        raise PeerMissingError(
            "The benchmark needs supar, which is not installed. Its own dependencies are not "
            "needed: pip install --no-deps supar==1.1.4"
        )
    root = Path(next(iter(found.submodule_search_locations)))
    for name, path in (("supar", root), ("supar.utils", root / "utils")):
        package = ModuleType(name)
        package.__path__ = [str(path)]
        sys.modules[name] = package
    return importlib.import_module("supar.structs")
