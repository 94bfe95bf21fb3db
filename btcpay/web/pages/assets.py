"""Script, style, icon: read and compressed once; browsers keep them by a hash in their address."""

import hashlib
import re
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "static"
MEDIA_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Asset:
    """One file as it is served, and compressed with gzip."""

    content: bytes
    gzipped: bytes
    media_type: str
    name: str


@cache
def _files() -> dict[str, Asset]:
    """The files of `static`, each with the name that has its hash: `pages.1a2b3c4d5e.css`."""
    found = {}
    for path in FOLDER.iterdir():
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()[:10]
        name = f"{path.stem}.{digest}{path.suffix}"
        gzipped = zlib.compress(content, 9, wbits=31)  # in gzip's format (RFC 1952)
        found[path.name] = Asset(content, gzipped, MEDIA_TYPES[path.suffix], name)
    return found


def address(file: str) -> str:
    """Relative to the root of the pages: the service may stand under a prefix."""
    return f"assets/{_files()[file].name}"


def find(name: str) -> tuple[Asset, bool] | None:
    """The file of that name, and whether the hash in it is the file's own.

    A page of an older program may ask for a hash that is gone; then it gets today's file.
    """
    match = re.fullmatch(r"(\w+)\.[0-9a-f]{10}(\.\w+)", name)
    asset = _files().get(match[1] + match[2]) if match else None
    return (asset, asset.name == name) if asset else None
