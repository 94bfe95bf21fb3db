"""What the service is compared with: a Flask route and a constant JSON answer."""

import os

from flask import Flask, Response

app = Flask(__name__)


def add(size: int) -> None:
    """A path that answers as many bytes as an answer of the service has."""
    body = b'{"data":"%s"}' % (b"x" * (size - 11))
    app.add_url_rule(f"/{size}", str(size), lambda: Response(body, mimetype="application/json"))


for text in os.environ["BARE_BYTES"].split():
    add(int(text))
