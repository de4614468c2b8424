"""The page: the explorer's parts, with a list of models to choose from."""

from collections.abc import Mapping
from functools import cache

from ...web._assets import Asset, assets, assets_of

PAGE = "trying.html"


@cache
def page_assets() -> Mapping[str, Asset]:
    """Return every file of the page by name."""
    return {**assets(), **assets_of("foveal.serving.server")}
