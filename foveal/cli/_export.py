"""`foveal export`: a model as a folder that runs without torch."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from ..data import Example, LineReader
from ..errors import ExportError
from ..extras import require
from ..specs._files import specs_in
from ._speech import explaining


def command(
    bundle: Positional[Path],
    /,
    *,
    out: Path,
    int8: bool = False,
    half: bool = False,
    plain: bool = False,
    steps: bool = False,
    page: Path | None = None,
    check: Path | None = None,
    license_of_weights: Annotated[str | None, arg(name="license")] = None,
    data: tuple[str, ...] = (),
    with_specs: Path | None = None,
) -> None:
    """Export a model to a folder that runs without torch, and test the folder.

    `foveal-run OUT < words.txt` then answers with numpy and ONNX Runtime only. The export answers up to 200 inputs like
    the original before the command keeps it.

    Args:
        bundle: The folder of a model that `foveal fit` saved.
        out: The folder to write.
        int8: Store weights in 8 bits: a quarter of the size. Computation stays in float32.
        half: Store weights in 16 bits: half of the size. Computation stays in float32.
        plain: Add the plain model file, for engines without ONNX Runtime such as the C library.
        steps: Add the encoder and one step of the decoder as two graphs, for a search of your own: sampling, constraints,
            ensembles.
        page: Write one HTML file that answers in a browser without a network; the model must have a plain model file, which is
            then added too.
        check: A file with one input on each line for the test; a second column contains the features, if the model
            reads some. Defaults to the validation examples of the run.
        license_of_weights: The license of the exported weights, for the model card.
        data: Lines about the training data and its license, for the model card.
        with_specs: A Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The command runs the file.
    """
    require("export", "onnx", "onnxruntime", needed_by="foveal export")
    from ..export import ExportOptions, export_bundle, write_page  # noqa: PLC0415 - an extra
    from ..planning._files import validation_examples  # noqa: PLC0415 - slow

    if int8 and half:
        raise ExportError("expected one of --int8 and --half, got both. Remove one.")
    also = specs_in(with_specs)
    if check is None:
        examples = list(validation_examples(bundle, also))
    else:
        examples = [_example(line) for line in LineReader(str(check))]
    options = ExportOptions(
        storage="int8" if int8 else "half" if half else "float32",
        plain=plain or page is not None,
        steps=steps,
        license=license_of_weights,
        data=data,
        also=also,
    )
    done = export_bundle(bundle, out, examples, options)
    explaining().print(
        f"{done.folder}: {done.size / 1e6:.2f} MB, answers {done.num_equal} of {done.num_tested} inputs like the original",
        highlight=False,
    )
    if page is not None:
        size = write_page(done.folder, page, bundle.resolve().name)
        explaining().print(f"{page}: {size / 1e6:.2f} MB, opens in a browser", highlight=False)


def _example(line: str) -> Example:
    text, _, features = line.partition("\t")
    return Example(text, features=features.split("\t")[0])
