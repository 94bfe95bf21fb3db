"""Greenfield, the interface that shops' plug-ins speak: stores, their orders, what each means."""
