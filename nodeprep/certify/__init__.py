"""Judging a node and vouching for it: judge, certificate, signing, drift; pure but for the key file."""
