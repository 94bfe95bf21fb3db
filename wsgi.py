"""The WSGI entry point `wsgi:app`, for any WSGI server.

If a setting is wrong, importing this module raises SettingsError, and gunicorn ends. If
this module called sys.exit instead, gunicorn would restart the worker for ever. With
gunicorn, deploy/gunicorn.conf.py has checked the settings before.

The service logs at gunicorn's level, so `--log-level warning` omits the line of each
request.

`blocktill run` imports this module before it forks the service. So this module loads
all that a worker needs, and leaves no database connection open.
"""

import logging
import os

from app import create_app
from btcpay.settings import env_file
from btcpay.settings.logs import to_json
from btcpay.settings.settings import read
from btcpay.web.pages.render import warm

# Our log lines contain none of these, so they are not collected (Logging HOWTO, "Optimization").
logging.logThreads = False
logging.logProcesses = False
logging.logMultiprocessing = False
logging._srcfile = None
logging.basicConfig(level=logging.getLogger("gunicorn.error").level or logging.INFO)
to_json(logging.root)
env_file.fill(os.environ)
app = create_app(read(os.environ))
warm(app)
app.extensions["blocktill"].db.close()
