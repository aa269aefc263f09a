"""GPU generations as data, one YAML file each, and how a policy becomes a NodeSpec."""
