"""Fault injection into the whole service: processes are killed or stopped, and invariants are checked."""
