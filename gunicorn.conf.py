"""Read by `gunicorn wsgi:app` in a checkout: the configuration of `blocktill serve`."""

from btcpay.web.gunicorn_conf import *  # noqa: F403 - gunicorn takes every name
