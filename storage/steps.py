"""The schema's steps (migrations): SQL files, each of which is run once, in order."""

import hashlib
import re
from functools import cache
from pathlib import Path

# The first file creates the schema; each later one changes it. Their names begin with a number.
STEPS = Path(__file__).parent / "schema"
# Replacements that turn the files' PostgreSQL statements into SQLite's. A STRICT table refuses a
# value of another type, as PostgreSQL does.
_FOR_SQLITE = {
    r"BIGINT": "INTEGER",
    r"GENERATED ALWAYS AS IDENTITY PRIMARY KEY": "PRIMARY KEY AUTOINCREMENT",
    r"BYTEA": "BLOB",
    r" text_pattern_ops": "",
    r"\n\)$": "\n) STRICT",
}
_ONLY_SERVERS = "-- PostgreSQL alone\n"


def steps(folder: Path = STEPS) -> list[Path]:
    """Returns the SQL files of a schema (its migrations), in order.

    The version of a database is the number of files that were run in it.
    """
    return sorted(folder.glob("*.sql"))


def statements(step: Path, is_server: bool) -> list[str]:
    """Returns the file's SQL statements without comments, for PostgreSQL or SQLite."""
    text = step.read_text(encoding="utf-8")
    if not is_server:
        text = text.partition(_ONLY_SERVERS)[0]
    text = re.sub(r"\s*--.*", "", text)
    texts = re.split(r";$", text, flags=re.MULTILINE)
    parts = list(filter(None, map(str.strip, texts)))
    if is_server:
        return parts
    for word, sqlites in _FOR_SQLITE.items():
        parts = [re.sub(word, sqlites, part) for part in parts]
    return parts


def hash_of(step: Path) -> str:
    """Returns the SHA-256 of a file's statements, in hex. It is the same for both databases.

    The statements are hashed in PostgreSQL's form.
    """
    text = "\n".join(statements(step, is_server=True))
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def hash_of_steps(folder: Path, number: int) -> str:
    """Returns the SHA-256 of the first `number` files, in hex.

    It is the hash of the files' hashes, one on a line.
    """
    first_steps = steps(folder)[:number]
    lines = "\n".join(map(hash_of, first_steps))
    return hashlib.sha256(lines.encode()).hexdigest()
