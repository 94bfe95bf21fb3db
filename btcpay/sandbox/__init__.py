"""The sandbox: a regtest chain in one process, for trying out the service.

It serves real blocks as an Esplora block explorer, and has a page to pay and mine.
"""
