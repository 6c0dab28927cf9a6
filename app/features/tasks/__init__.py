"""Tasks in the dashboard: rubrics and scores, and an editor of tasks in YAML."""

from app.feature import Feature
from app.tabs import Tab

FEATURE = Feature(
    name="tasks",
    routers=("api:router", "api:answers_router"),
    pages=("pages:router",),
    tabs=(Tab(name="tasks", path="/tasks", label="Tasks"),),
    job_runners={"test": "trials:TEST_RUNNER"},
)
