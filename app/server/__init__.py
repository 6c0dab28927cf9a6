"""Web application, and the entry points of the server and worker processes."""
