"""The gunicorn entry: `gunicorn wsgi:app` (gunicorn.conf.py checks the settings before).

What gunicorn logs, the service logs too: `--log-level warning` leaves the requests out.
"""

import logging
import os

from app import create_app
from btcpay.web.logs import to_json
from btcpay.web.server.startup import read_or_exit

logging.basicConfig(level=logging.getLogger("gunicorn.error").level or logging.INFO)
to_json(logging.root)
app = create_app(read_or_exit(os.environ))
