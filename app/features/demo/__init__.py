"""Loading of the demo into a running service, for its first-run page."""

from app.feature import Feature

FEATURE = Feature(name="demo", routers=("api:router",), pages=("pages:router",))
