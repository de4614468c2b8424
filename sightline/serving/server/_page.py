"""The page: the explorer's parts, with a list of models to choose from."""

from collections.abc import Mapping
from functools import cache
from importlib import resources

from ...explorer import Asset, assets

PAGE = "trying.html"
_TYPES = {".html": "text/html", ".js": "text/javascript"}


@cache
def page_assets() -> Mapping[str, Asset]:
    """Every file of the page by its name."""
    folder = resources.files("sightline.serving.server") / "assets"
    own = {
        file.name: Asset(file.read_bytes(), _TYPES[file.name[file.name.rindex(".") :]])
        for file in folder.iterdir()
        if file.name.endswith(tuple(_TYPES))
    }
    return {**assets(), **own}
