"""The pages that people open: what was scored, why, and what to do about it.

Written by the server, with Jinja2 and htmx and nothing that must be built or fetched. It knows only the JSON API, which
it asks in the viewer's name: what a key may not read or do there, it may not read or do here.
"""
