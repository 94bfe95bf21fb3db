"""Requests and answers, as marshmallow schemas."""
