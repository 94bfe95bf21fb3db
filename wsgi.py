"""The gunicorn entry: `gunicorn wsgi:app` (gunicorn.conf.py checks the settings before)."""

import os

from app import create_app
from btcpay.settings import read

app = create_app(read(os.environ))
