"""The service: its composition, its processes and what every request passes."""
