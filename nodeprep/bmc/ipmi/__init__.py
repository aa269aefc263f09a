"""IPMI over LAN.

Reading order: child (the process that speaks IPMI), session (its owner, with the deadlines), power, sel
and identity (what is said), controller (all of it behind the interface that Redfish will have too).
"""
