"""What the service is compared with: one Flask route and a constant JSON answer."""

import os

from flask import Flask, Response

BODY = b'{"data":"%s"}' % (b"x" * (int(os.environ["BARE_BYTES"]) - 11))

app = Flask(__name__)


@app.get("/")
def constant() -> Response:
    """As many bytes as the service's answer has."""
    return Response(BODY, mimetype="application/json")
