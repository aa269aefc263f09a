"""What the GPUs of one node do together: host copies side by side, copies to each other, all-reduce.

Runs after the GPUs' own load. One process a GPU ("rank"), all of them led by the parent through
pipes, so that whoever hangs or dies is known by name and hides nothing that the others found.
"""
