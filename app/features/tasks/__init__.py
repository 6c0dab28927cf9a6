"""Tasks in the dashboard: rubrics, scores and the text of task files."""

from app.feature import Feature
from app.tabs import Tab

FEATURE = Feature(
    name="tasks",
    routers=("api:router",),
    pages=("pages:router",),
    tabs=(Tab(name="tasks", path="/tasks", label="Tasks"),),
)
