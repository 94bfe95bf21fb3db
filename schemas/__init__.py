"""Request and response bodies as marshmallow schemas."""
