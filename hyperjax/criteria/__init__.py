"""Validation functions: held-out outputs to a scalar."""
