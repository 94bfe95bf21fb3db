"""The customer of the sandbox: a wallet that pays, replaces and takes back."""
