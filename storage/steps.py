"""The schema's steps (migrations): SQL files, each of which is run once, in order."""

import hashlib
import re
from functools import cache
from pathlib import Path

# The first file creates the schema; each later one changes it. Their names begin with a number.
STEPS = Path(__file__).parent / "schema"
# Patterns in PostgreSQL's statements, and their replacements for SQLite. A STRICT table refuses a
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
    """Returns the SQL statements of the schema file `step`, without its comments.

    They are for PostgreSQL if `is_server` is True, else for SQLite.
    """
    text = step.read_text(encoding="utf-8")
    if not is_server:
        # what only PostgreSQL needs stands at the end of the file
        text, _, _ = text.partition(_ONLY_SERVERS)
    without_comments = re.sub(r"\s*--.*", "", text)
    parts = re.split(r";$", without_comments, flags=re.MULTILINE)
    texts = list(filter(None, map(str.strip, parts)))
    if is_server:
        return texts
    return [_for_sqlite(statement) for statement in texts]


def _for_sqlite(statement: str) -> str:
    """Returns a statement of PostgreSQL in SQLite's words."""
    for pattern, replacement in _FOR_SQLITE.items():
        statement = re.sub(pattern, replacement, statement)
    return statement


def hash_of(step: Path) -> str:
    """Returns the SHA-256 of a schema file's statements, in hex.

    It is the same for both databases, because the statements are hashed in PostgreSQL's
    form.
    """
    text = "\n".join(statements(step, is_server=True))
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def hash_of_steps(folder: Path, number: int) -> str:
    """Returns one SHA-256 of the first `number` schema files in `folder`, in hex.

    It is the hash of a text that has the hash of each file on a line.
    """
    first_steps = steps(folder)[:number]
    lines = "\n".join(map(hash_of, first_steps))
    return hashlib.sha256(lines.encode()).hexdigest()
