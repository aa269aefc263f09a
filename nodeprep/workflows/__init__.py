"""What the commands do, without printing: inspect, plan, apply, verify, certify, demo."""
