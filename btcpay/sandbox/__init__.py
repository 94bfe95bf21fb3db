"""A regtest chain of real blocks inside one process, served as an Esplora explorer with buttons."""
