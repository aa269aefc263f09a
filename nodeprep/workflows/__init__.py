"""What the commands do, without printing: init, inspect, plan, apply, verify, certify, cert, demo, doctor."""
