"""Templates that are compiled once for all services of the tests, in whatever process."""

from pathlib import Path

from flask import Flask
from jinja2 import FileSystemBytecodeCache

TEMPLATES = "COMPILED_TEMPLATES"  # the variable with the folder


def share_templates(folder: Path) -> None:
    """Has this process's services keep compiled templates in the folder, and look there first."""
    Flask.jinja_options = {"bytecode_cache": FileSystemBytecodeCache(str(folder))}
