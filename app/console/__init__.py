"""Shared parts of the commands: output, options, server connection, tables and progress."""
