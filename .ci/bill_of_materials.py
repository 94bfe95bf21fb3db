"""The bill of materials of a release, as CycloneDX 1.6."""

import hashlib
import json
import re
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# The requirements of every shop, then those of the extras.
LOCKS = (
    "requirements.txt",
    "requirements/postgres.txt",
    "requirements/redis.txt",
    "requirements/socks.txt",
)
# A requirement with its version and hashes, as `make lock` writes them.
PINNED = re.compile(
    r"^([\w.-]+)==([^\s;\\]+)[^\n]*((?:\n    --hash=\S+(?: \\)?)+)", re.M
)


def write_bill(sources: Path, folder: Path, files: Sequence[Path], time: int) -> Path:
    """Writes the bill of materials into `folder`, and returns its file.

    `files` are the release's, `time` is the commit's (Unix seconds). A requirement has
    one hash for each of its files that may be installed. The requirements of an extra
    are optional. See https://cyclonedx.org/docs/1.6/json/.
    """
    package = (sources / "btcpay/__init__.py").read_text()
    version = re.search('__version__ = "(.+)"', package)[1]
    own = component("blocktill", version, [sha256_of(file) for file in files])
    needed = requirements(sources)
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, own['hashes'][0]['content'])}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(time, UTC).isoformat(),
            "component": own | {"type": "application"},
        },
        "components": needed,
        "dependencies": [
            {
                "ref": own["bom-ref"],
                "dependsOn": [package["bom-ref"] for package in needed],
            }
        ],
    }
    target = folder / f"blocktill-{version}.cdx.json"
    target.write_text(json.dumps(bill, indent=1) + "\n")
    return target


def requirements(sources: Path) -> list[dict[str, Any]]:
    """Returns each pinned package once, as a component of the bill.

    A package that only extras need has the scope "optional".
    """
    packages: dict[str, dict[str, Any]] = {}
    for lock in LOCKS:
        text = (sources / lock).read_text()
        scope = "optional"
        if lock == LOCKS[0]:
            scope = "required"
        for name, version, hashes in PINNED.findall(text):
            sums = re.findall(r"sha256:(\w+)", hashes)
            package = component(name, version, sums) | {"scope": scope}
            packages.setdefault(name, package)
    return list(packages.values())


def component(name: str, version: str, sums: Sequence[str]) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": sum} for sum in sums],
    }


def sha256_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
