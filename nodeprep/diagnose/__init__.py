"""From logs and counters to incidents: pure over readers, no I/O but on the inputs it is given."""
