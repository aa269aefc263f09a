"""Running Ansible over many hosts and remembering how far each came."""
