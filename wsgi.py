"""The WSGI entry point `wsgi:app`, for any server.

gunicorn's configuration (deploy/gunicorn.conf.py) checks the settings before. The
service logs at gunicorn's level: `--log-level warning` omits the requests. A wrong
setting raises SettingsError, so that gunicorn ends. If the worker called sys.exit,
gunicorn would restart it.
"""

import logging
import os

from app import create_app
from btcpay.settings import env_file
from btcpay.settings.logs import to_json
from btcpay.settings.settings import read

# Our log lines contain none of these, so they are not collected (Logging HOWTO, "Optimization").
logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
logging._srcfile = None
logging.basicConfig(level=logging.getLogger("gunicorn.error").level or logging.INFO)
to_json(logging.root)
env_file.fill(os.environ)
app = create_app(read(os.environ))
