"""The typed documents that flow through nodeprep; pure, no I/O.

Source order is reading order: reading (the three-valued value everything is built from), facts,
policy, spec, plan, result, probe, certificate, codec.
"""
