"""Redfish: the client, and what it makes of a BMC's BIOS settings.

Reading order: errors and messages (what can go wrong, and how a BMC says it), answers, patience, wire and
tls (bytes), exchange (one order), auth, etag and if_match, connection (the conversation); resource (declared
access); service (who the BMC is), bios (current and pending), registry, registry_finder and
registry_dependencies (what may be set); sensors, with sensors_old, sensors_new and sensor_entries (what it
measures).
"""
