"""The page on which a person pays, mines and plays scenes; its buttons answer programs too."""
