"""The sandbox: a regtest chain in one process, for trying out the service.

It serves its blocks over the API of an Esplora block explorer. Its page has buttons
that pay and that mine.
"""
