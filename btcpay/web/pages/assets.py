"""Static files of the pages: scripts, style sheets and icons.

They include the files of parts (optional plug-ins). Each file is loaded and compressed
once. Its URL contains a hash of its content, so browsers may cache it for ever.
"""

import functools
import hashlib
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from flask import Response

from btcpay import hooks
from btcpay.web.pages.compression import GZIP_FORMAT

FOR_EVER = "public, max-age=31536000, immutable"
FOLDER = Path(__file__).resolve().parent / "static"
MEDIA_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
_NAME_WITH_HASH = re.compile(r"(?P<stem>\w+)\.[0-9a-f]{10}(?P<suffix>\.\w+)")


@dataclass(frozen=True)
class Asset:
    """A static file.

    `gzipped` is its content in the gzip format (RFC 1952). `name` is the file's name
    with the hash of its content, such as `pages.1a2b3c4d5e.css`.
    """

    content: bytes
    gzipped: bytes
    media_type: str
    name: str


def file_response(
    content: bytes | str,
    media_type: str,
    is_immutable: bool = True,
) -> Response:
    """Returns a response with the content of a file.

    `is_immutable` says that the content stays the same as long as its URL does. If it is
    True, browsers cache the content for ever; if it is False, they never cache it.
    """
    cache_control = "no-store"
    if is_immutable:
        cache_control = FOR_EVER
    headers = {"Cache-Control": cache_control}
    return Response(content, content_type=media_type, headers=headers)


def asset_path(file: str) -> str:
    """Returns the path of a static file with its hash, relative to the service's root.

    The path has no leading slash, since a proxy may serve the service under a prefix.
    """
    return f"assets/{_assets()[file].name}"


class AssetMatch(NamedTuple):
    """A static file that was requested by its name with a hash.

    `is_current` is True if the hash is that of the file's present content.
    """

    asset: Asset
    is_current: bool


def find_asset(name: str) -> AssetMatch | None:
    """Returns the static file with this name, which has a hash; None if there is none.

    If the hash is an old one, returns the present file: a page that an older version of
    the service has made may request it.
    """
    match = _NAME_WITH_HASH.fullmatch(name)
    if match is None:
        return None
    asset = _assets().get(match["stem"] + match["suffix"])
    if asset is None:
        return None
    return AssetMatch(asset, is_current=asset.name == name)


@functools.cache
def _assets() -> dict[str, Asset]:
    """Returns all static files by their names without a hash."""
    return {path.name: _load(path) for path in _paths()}


def _paths() -> Iterator[Path]:
    for folder in (FOLDER, *hooks.PARTS_FOLDER.glob("*/static")):
        yield from folder.iterdir()


def _load(path: Path) -> Asset:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:10]
    return Asset(
        content=content,
        gzipped=zlib.compress(content, 9, wbits=GZIP_FORMAT),
        media_type=MEDIA_TYPES[path.suffix],
        name=f"{path.stem}.{digest}{path.suffix}",
    )
