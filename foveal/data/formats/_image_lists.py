"""Lists of images and texts, one pair on each line, and folders named after labels.

    cat.png     a cat on a mat              tab-separated: image, text
    cat.png#0   a cat on a mat              with numbers, as in Flickr8k.token.txt
    photos/cat/1.png                        a folder for each label

The source of an example is a `Picture`, or a `PictureQuestion` if there is a column of questions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, final

from typing_extensions import override

from ...specs import setting
from .._example import BY_SETTING, Example, Where, data_error, quoted
from .._inputs import Picture, PictureQuestion
from .._lines import MAX_LINE, LineReader, Place
from .._source import Cursor, FileSource, Paths, Position, Shard, Source, path_texts
from ..images._bytes import archive_members
from ..images._frames import natural_order
from ..images._images import SUFFIXES
from ..images._paths import ABOUT_IMAGES, image_path
from ._formats import ABOUT_MAX_LINE, ABOUT_PATHS


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ImageList(FileSource):
    """Tab-separated columns, counted from 0, one of which contains the name of an image or a clip. Empty lines are
    skipped.
    """

    is_by_line: ClassVar[bool] = True
    kind: Literal["image_list"] = "image_list"
    paths: tuple[str, ...] = setting(about=ABOUT_PATHS)
    images: str | None = setting(None, ABOUT_IMAGES)
    image: int | None = setting(
        0, "column of the image file name; none: the line number, from 0", at_least=0
    )
    target: int | None = setting(1, "column of the target, a text or a label", at_least=0)
    second: int | None = setting(None, "column of the question about the image", at_least=0)
    suffix: str = setting("", "suffix of each name, such as .png")
    numbered: bool = setting(False, "names end in # and the number of a caption, as in Flickr8k")
    quotes: bool = setting(False, "columns may be in double quotes, with line breaks inside")
    max_line: int = setting(MAX_LINE, ABOUT_MAX_LINE, at_least=1)

    @override
    def shards(self, block: int | None = None) -> tuple[Shard, ...]:
        # A quoted cell can span lines, so a shard cannot start in the middle of a file.
        return FileSource.shards(self, None if self.quotes else block)

    @override
    def examples(self, readers: Sequence[LineReader]) -> Iterator[Example]:
        (reader,) = readers
        used = [column for column in (self.image, self.second, self.target) if column is not None]
        for line in _whole_rows(reader) if self.quotes else reader:
            if not line.strip():
                continue
            cells = line.split("\t")
            if self.quotes:
                cells = [_unquoted(cell) for cell in cells]
            if used and len(cells) <= max(used):
                raise reader.error(
                    f"{len(cells)} columns, expected at least {max(used) + 1} separated by tabs, in "
                    f"{quoted(line)}",
                    f"Write the name of an image, a tab and a text, or set the columns to read{BY_SETTING}",
                )
            name = self._name(cells, reader)
            picture = Picture(image_path(reader.file, self.images, name, reader.where))
            yield Example(
                picture
                if self.second is None
                else PictureQuestion(picture, cells[self.second].strip(" ")),
                None if self.target is None else cells[self.target].strip(" "),
                where=reader.where,
            )

    def _name(self, cells: Sequence[str], reader: LineReader) -> str:
        if self.image is None:
            return f"{reader.line - 1}{self.suffix}"
        name = cells[self.image].strip(" ")
        if self.numbered:
            name, sign, number = name.rpartition("#")
            if not (sign and number.isdecimal()):
                raise reader.error(
                    f"expected a name, # and a number, got {quoted(cells[self.image])}",
                    "Write for example cat.png#0, or pass numbered=False",
                )
        return f"{name}{self.suffix}"


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ImageFolders(Source):
    """Images in one folder for each label: the name of the folder is the target. Images are sorted by folder, then
    by name, with numbers in names in numeric order.
    """

    unit: ClassVar[str] = "image"
    kind: Literal["image_folders"] = "image_folders"
    paths: tuple[str, ...] = setting(about="folders, or zip archives, of folders of images")

    @override
    def shards(self, block: int | None = None) -> tuple[Shard, ...]:
        return tuple(Shard((path,), Position((Place(),)), (None,)) for path in self.paths)

    @override
    def open(self, shard: Shard, position: Position | None = None) -> Cursor:
        return _FolderCursor(shard.files[0], position.num_passed if position else 0)


@final
class _FolderCursor(Cursor):
    def __init__(self, root: str, number: int) -> None:
        self._root, self._number, self._names = Path(root), number, _image_names(Path(root))

    @override
    def __next__(self) -> Example:
        if self._number >= len(self._names):
            raise StopIteration
        self._number += 1
        label, name = self._names[self._number - 1]
        path = self._root / label / name
        return Example(Picture(path), label, where=Where(str(path), 1))

    @override
    def position(self) -> Position:
        return Position((Place(),), self._number)

    @override
    def number(self, example: Example) -> int:
        return self._number


def image_list(
    paths: Paths,
    images: str | Path | None = None,
    *,
    image: int | None = 0,
    target: int | None = 1,
    second: int | None = None,
    suffix: str = "",
    numbered: bool = False,
    quotes: bool = False,
    max_line: int = MAX_LINE,
) -> ImageList:
    """Read lists of images and texts; see `ImageList`.

    Args:
        paths: Files, or patterns; plain, gzip or zstd.
        images: Folder or zip archive that the names of images are relative to; None for the folder of each file.
        image: Column of the image's name, counted from 0; None if the number of the line, counted from 0, is the name.
        target: Column of the text or label to produce; None for data without targets.
        second: Column of the question about the image.
        suffix: Suffix to add to each name, for example `.png`.
        numbered: Whether names end in `#` and the number of a text, as in Flickr8k.
        quotes: Whether columns may be in double quotes, with line breaks inside.
        max_line: Maximum number of bytes of a line.

    Returns:
        A source with one example per row.
    """
    return ImageList(
        paths=path_texts(paths),
        images=None if images is None else str(images),
        image=image,
        target=target,
        second=second,
        suffix=suffix,
        numbered=numbered,
        quotes=quotes,
        max_line=max_line,
    )


def _whole_rows(reader: LineReader) -> Iterator[str]:
    """Yield lines, joining lines within quotes."""
    opened: list[str] = []
    is_open = False
    for line in reader:
        opened.append(line)
        is_open ^= bool(line.count('"') % 2)
        if not is_open:
            yield " ".join(opened)
            opened = []
    if opened:
        raise reader.error("a quoted cell is not closed before the end of the file", "Close them")


def _unquoted(cell: str) -> str:
    cell = cell.strip(" ")
    is_quoted = len(cell) >= 2 and cell[0] == cell[-1] == '"'
    return cell[1:-1].replace('""', '"') if is_quoted else cell


def image_folders(paths: Paths) -> ImageFolders:
    """Read folders of images, one for each label; see `ImageFolders`.

    Args:
        paths: Folders or zip archives, each with one folder of images per label.

    Returns:
        A source with one example per image.
    """
    return ImageFolders(paths=path_texts(paths))


def _image_names(root: Path) -> list[tuple[str, str]]:
    """Return the folder and name of each image."""
    if root.is_file():
        split = (name.rpartition("/") for name in archive_members(root))
        names = [(folder, name) for folder, _, name in split]
    elif root.is_dir():
        folders = [folder for folder in root.iterdir() if folder.is_dir()]
        names = [(folder.name, image.name) for folder in folders for image in folder.iterdir()]
    else:
        raise data_error(
            str(root), "does not exist", "Use a folder with one folder of images per label"
        )
    images = [
        (folder, name)
        for folder, name in names
        if folder and Path(name).suffix.lower() in SUFFIXES and not name.startswith(".")
    ]
    if not images:
        raise data_error(
            str(root),
            "has no image in any of its folders",
            "Put the images of each label into a folder that has its name",
        )
    return sorted(images, key=lambda pair: (natural_order(pair[0]), natural_order(pair[1])))
