"""The WSGI entry, `wsgi:app` for any server (deploy/gunicorn.conf.py checks the settings before).

The service logs at gunicorn's level: `--log-level warning` leaves the requests out. A wrong setting
raises SettingsError, so that gunicorn ends: it would restart a process that exits.
"""

import logging
import os

from app import create_app
from btcpay.settings import env_file
from btcpay.settings.logs import to_json
from btcpay.settings.settings import read

# No log line of ours shows these, so they are not collected (Logging HOWTO, "Optimization").
logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
logging._srcfile = None
logging.basicConfig(level=logging.getLogger("gunicorn.error").level or logging.INFO)
to_json(logging.root)
env_file.fill(os.environ)
app = create_app(read(os.environ))
