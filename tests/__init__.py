"""All tests: unit/ mirrors the package; e2e/ runs it under a real control plane."""
