"""Greenfield, the interface that shops' plug-ins speak: stores, and their orders."""
