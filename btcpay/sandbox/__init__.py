"""The sandbox: a regtest chain in one process, for trying out the service.

It serves real blocks like an Esplora block explorer. Its page has buttons to pay and to
mine.
"""
