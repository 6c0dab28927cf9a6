"""Judge files in processes of their own, which hold no secret and can be killed at any moment.

``nursery`` keeps a warm fork server (``fork_server``), a clean program that was never handed a key. Every run of a
judge file is a child of it (``script_process``) under limits (``confining``), watched to its end (``watching``). It
asks the service for verdicts, values and pages (``door`` on its side, ``conversation`` and ``desk`` on ours), so
prompts, keys, votes and budgets stay where they were.
"""
