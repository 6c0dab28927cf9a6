"""Web dashboard: agents, jobs, results, review and evidence repair.

Pages are rendered on the server with Jinja2 and htmx; there is no build step and no external resource. All data comes
from the HTTP API, which is called with the viewer's API key, so the dashboard has exactly the permissions of this key.
"""
