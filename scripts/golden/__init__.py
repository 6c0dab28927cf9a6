"""Conformance checks of the suites against golden cases: inputs with reference outputs."""
