"""Computing in a process of its own, beside the one that reads and writes."""

from ._bundles import load_version as load_version, signature as signature
from ._orders import failed as failed
from ._process import Computing as Computing, FaultError as FaultError
from ._served import Served as Served, named_folders as named_folders
from ._worker import main as main
