"""Mutation testing of judges: an answer is changed in known ways, and the leaves that should notice are watched."""
