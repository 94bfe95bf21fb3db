"""The WSGI entry, `wsgi:app` for any server (gunicorn.conf.py checks the settings before).

What gunicorn logs, the service logs too: `--log-level warning` leaves the requests out. A wrong
setting raises SettingsError: gunicorn then ends, where it would start a process that exits anew.
"""

import logging
import os

from app import create_app
from btcpay.settings import env_file
from btcpay.settings.settings import read
from btcpay.web.logs import to_json

# None of our lines shows these, so no record has to find them out (Logging HOWTO, "Optimization").
logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
logging._srcfile = None
logging.basicConfig(level=logging.getLogger("gunicorn.error").level or logging.INFO)
to_json(logging.root)
env_file.fill(os.environ)
app = create_app(read(os.environ))
