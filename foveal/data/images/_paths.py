"""Names of files in lists and annotations, which are restricted to one folder or archive."""

from pathlib import Path, PurePosixPath

from .._example import Where, data_error, quoted

ABOUT_IMAGES = "folder or zip archive of the images; none: the folder of the file"


def image_path(
    file: str, images: str | None, name: str, where: Where, *, noun: str = "images"
) -> Path:
    """Return the path of an image that a file names. An untrusted file cannot refer to other folders.

    Args:
        file: The list, or the annotations.
        images: The folder or archive that names are relative to; None for the folder of the file.
        name: The name in the file, with / between folders.
        where: The location in the file.
        noun: Plural noun of the files in the error message.

    Returns:
        The path of the image.

    Raises:
        DataError: The name is absolute, contains `..`, or is not the name of a file.
    """
    parts = PurePosixPath(name).parts
    leads_out = not parts or name.startswith("/") or ".." in parts or ":" in parts[0]
    if leads_out or any(sign in name for sign in "\\\t\r\n\0"):
        raise data_error(
            where,
            f"{quoted(name)} is not a path inside the folder of {noun}",
            "Write a relative path with / between folders and without ..",
        )
    root = Path(file).parent if images is None else Path(images)
    return root.joinpath(*parts)
