"""Golden cases: inputs with the outputs of a reference, against which the suites are checked."""
