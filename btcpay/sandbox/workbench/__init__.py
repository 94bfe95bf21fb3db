"""The workbench: the sandbox's page, on which a person pays, mines and starts scenes.

To programs, its buttons return JSON.
"""
