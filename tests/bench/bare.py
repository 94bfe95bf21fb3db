"""The service's yardstick: Flask routes with a constant answer, one for each size."""

import os

from flask import Flask, Response

app = Flask(__name__)


def add(size: int) -> None:
    body = b"x" * size
    app.add_url_rule(
        f"/{size}", f"{size}", lambda: Response(body, mimetype="application/json")
    )


for size in set(os.environ["BARE_BYTES"].split()):
    add(int(size))
