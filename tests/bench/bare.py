"""What the service is compared with: a Flask route that answers so many bytes and does no more."""

from flask import Flask, Response

app = Flask(__name__)


@app.get("/<int:size>")
def constant(size: int) -> Response:
    return Response(b"x" * size, mimetype="application/json")
