"""Tests of the public toolkit's interface, as task scripts use it."""
