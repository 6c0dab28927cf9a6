"""Tests of the public toolkit's interface, as judge scripts use it."""
