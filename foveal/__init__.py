"""Foveal: attention models you can see into.

Attention is an expectation under a distribution over selections,

    context = E[ read(values, z) ],   z ~ p(z | scores),

so every attention is score -> distribute -> read. Each package imports only packages above it in this list:

    errors           exceptions that a user can cause
    devices          the device that a name such as auto or cuda:1 stands for
    runtime          runs exported models without torch, and the tokenizers and limits that both share
    extras           the check for optional packages
    masking, shapes  masks that are True on real tokens; any leading batch shape
    batch_invariant  operations whose result for a row does not depend on the rest of the batch
    datasets         samples that ship with the package; the public data sets of recipes and examples
    shelf            trained models that have a name, in installed packages and in a folder of the user
    specs            frozen dataclasses as JSON and as settings
    inference        pure functions on log-potentials, one folder for each structure; C++ kernels if installed
    distributions    values with one set of verbs: log_partition, marginals, argmax, sample, entropy
    estimators       gradients through samples of a distribution
    attention        score -> distribute -> read; Memory in, Attended out
    views            plain data to SVG and HTML: heat maps, arcs, overlays, curves
    networks         recurrent layers, encoders, decoders, and their one-step forms for search
    models           whole networks for one shape of problem, built from specs
    decoding         greedy, beam search, sampling, constraints; knows only the Stepper protocol
    data             files to examples to batches: formats, images, tokenizers, vocabularies, streams
    metrics          scores, intervals, calibration, slices; knows no model
    testing          law suites for distributions, attentions, networks and models
    tasks            one task in each file: data, model, loss and prediction
    bundles          a model as a folder: manifest, checksums, save, load, warm start
    training         one loop; checkpoints, schedules, events
    export           models as folders that run without torch: ONNX graphs, the plain file, the page
    planning         files to a plan: which task, which settings, and why
    inspection       explanations, the doctor, word alignment, reports
    web              HTTP parts that the explorer and the server share
    explorer         a page on this machine where you ask a model
    serving          a server with dynamic batching, and its client
    scale            many files, many processes; the only package that imports Ray
    cli              the command `foveal`, one file for each command

In short: `task = foveal.fit("train.tsv")`, `task.predict("text")`, `task = foveal.load("runs/first")`. `import foveal`
is fast, because it imports no other package: the first use of `fit` or `load` does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bundles import load_bundle as load
    from .planning._fit import fit as fit

__version__ = "0.1.0"
__all__ = ["__version__", "fit", "load"]
_LATE = {"fit": ("foveal.planning._fit", "fit"), "load": ("foveal.bundles", "load_bundle")}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'foveal' has no attribute {name!r}")
    module, member = _LATE[name]
    return getattr(import_module(module), member)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE} - {"Any", "TYPE_CHECKING", "import_module"})
