"""The gunicorn entry: `gunicorn wsgi:app` (gunicorn.conf.py checks the settings before)."""

import logging
import os

from app import create_app
from btcpay.settings import read

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
app = create_app(read(os.environ))
