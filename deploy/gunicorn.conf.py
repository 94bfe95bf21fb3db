"""`gunicorn -c deploy/gunicorn.conf.py wsgi:app` in a checkout serves as `blocktill serve` does."""

from btcpay.web.gunicorn_conf import *  # noqa: F403 - gunicorn takes every name
