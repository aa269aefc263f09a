"""The simulated rack: fake roots, fake NVML, faults. A public tool; whatever it touches says simulated."""
