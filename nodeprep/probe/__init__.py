"""The ViT-G stress probe; shipped to nodes as one .pyz, never imported by the controller."""
