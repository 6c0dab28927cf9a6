"""Isolation of task files: every run is a child process without secrets that can be killed at any time.

``fork_server_pool`` keeps a fork server running (``fork_server``), a separate program that never received a key. Every
run is a child of it, with resource limits (``process_limits``) and supervision. The child requests verdicts, values and
pages over RPC (``remote`` in the child, ``rpc_connection`` and ``rpc_server`` in the service), so prompts, keys, votes
and budgets stay in the service.
"""
