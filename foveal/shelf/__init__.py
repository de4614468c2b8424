"""The shelf: trained models that have a name, in installed packages and in a folder of the user.

    shelf()                     every model by name, with its license, score and size
    model_folder("g2p-en")      the folder of a model, after its checksums were compared
    model_folder("runs/mine")   an existing folder or a path stays as it is

A package adds a shelf with an entry point of the group `foveal.shelves`, which names a package with `index.json`;
`foveal-shelf` is one. Finding and reading a shelf runs no code of that package, and nothing uses the network. The
command `foveal models` lists and adds models. This package needs Python only.
"""

from ._finding import model_folder as model_folder, shelf as shelf
from ._index import ShelfModel as ShelfModel
