"""Scripts, style sheets and icons of the pages, the core's and those of the parts.

Each is read and compressed once. Browsers cache it for ever by the hash in its address.
"""

import functools
import hashlib
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flask import Response

from btcpay import hooks

FOR_EVER = "public, max-age=31536000, immutable"
FOLDER = Path(__file__).resolve().parent / "static"
MEDIA_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
_NAME_WITH_HASH = re.compile(r"(\w+)\.[0-9a-f]{10}(\.\w+)")


@dataclass(frozen=True)
class Asset:
    """One file as it is served; `gzipped` is in gzip's format (RFC 1952).

    `name`: with its hash, such as `pages.1a2b3c4d5e.css`.
    """

    content: bytes
    gzipped: bytes
    media_type: str
    name: str


def cached_file(
    content: bytes | str, media_type: str, for_ever: bool = True
) -> Response:
    """A file, which browsers cache `for_ever` if its address changes with its content."""
    cache = FOR_EVER if for_ever else "no-store"
    return Response(content, content_type=media_type, headers={"Cache-Control": cache})


def asset_path(file: str) -> str:
    """The path with the hash, relative to the root: the service may stand under a prefix."""
    return f"assets/{_assets()[file].name}"


def find_asset(name: str) -> tuple[Asset, bool] | None:
    """The file of that name, and whether the hash in the name is the file's own.

    A page of an older program may ask for a hash that is gone, and then gets today's file.
    """
    match = _NAME_WITH_HASH.fullmatch(name)
    if match is None:
        return None
    asset = _assets().get(match[1] + match[2])
    if asset is None:
        return None
    return asset, asset.name == name


@functools.cache
def _assets() -> dict[str, Asset]:
    """The files by their own names, without the hash."""
    return {path.name: _load(path) for path in _paths()}


def _paths() -> Iterator[Path]:
    for folder in (FOLDER, *hooks.PARTS_FOLDER.glob("*/static")):
        yield from folder.iterdir()


def _load(path: Path) -> Asset:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:10]
    return Asset(
        content=content,
        gzipped=zlib.compress(content, 9, wbits=31),
        media_type=MEDIA_TYPES[path.suffix],
        name=f"{path.stem}.{digest}{path.suffix}",
    )
