"""Writes and restores whole copies of the database.

A restore never lets the service give out an address twice.
"""
