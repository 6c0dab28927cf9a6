"""Restrictions that a process applies to itself before it handles untrusted data or runs a task file.

``privileges`` changes the user and drops capabilities, ``seccomp`` refuses system calls, ``landlock`` limits the files
that can be opened. For Linux; other systems apply what they support. See docs/decisions/0006-confined-task-files.md.
"""
