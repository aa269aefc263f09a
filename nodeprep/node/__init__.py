"""All that runs on a node: standard library only, Python >= 3.8, relative imports only."""
