"""The sandbox's page, on which a person pays, mines and starts scenes.

Its buttons return JSON to programs.
"""
