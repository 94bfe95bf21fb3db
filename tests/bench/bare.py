"""The service's yardstick: Flask routes with a constant answer, for each size.

`/SIZE` only answers. `/SIZE/sqlite` and `/SIZE/postgresql` first store the answer in one commit,
which is as durable as the service's.
"""

import os
import sqlite3
import threading

import psycopg
from flask import Flask, Response
from psycopg.conninfo import make_conninfo

from storage.database import SQLITE_PRAGMAS
from storage.postgres import SESSION

FILE = os.environ.get("BARE_SQLITE", "")
URL = os.environ.get("BARE_POSTGRESQL", "")
app = Flask(__name__)
connections = threading.local()
one_writer = threading.Lock()


def store_in_sqlite(body: bytes) -> None:
    if not hasattr(connections, "sqlite"):
        connections.sqlite = sqlite3.connect(FILE, isolation_level=None)
        for name, value in SQLITE_PRAGMAS.items():
            connections.sqlite.execute(f"PRAGMA {name} = {value}")
        connections.sqlite.execute(
            "CREATE TABLE IF NOT EXISTS stored (id INTEGER PRIMARY KEY, body BLOB)"
        )
    with one_writer:
        connections.sqlite.execute("INSERT INTO stored (body) VALUES (?)", [body])


def store_in_postgresql(body: bytes) -> None:
    if not hasattr(connections, "postgresql"):
        connections.postgresql = psycopg.connect(
            make_conninfo(URL, options=SESSION), autocommit=True
        )
    connections.postgresql.execute("INSERT INTO stored (body) VALUES (%s)", [body])


def add(size: int) -> None:
    body = b"x" * size

    def answer() -> Response:
        return Response(body, mimetype="application/json")

    def store_in_sqlite_and_answer() -> Response:
        store_in_sqlite(body)
        return answer()

    def store_in_postgresql_and_answer() -> Response:
        store_in_postgresql(body)
        return answer()

    app.add_url_rule(f"/{size}", f"{size}", answer)
    app.add_url_rule(f"/{size}/sqlite", f"{size}, SQLite", store_in_sqlite_and_answer)
    app.add_url_rule(
        f"/{size}/postgresql", f"{size}, PostgreSQL", store_in_postgresql_and_answer
    )


if URL:
    with psycopg.connect(URL) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS stored"
            " (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body BYTEA)"
        )
for size in set(os.environ["BARE_BYTES"].split()):
    add(int(size))
