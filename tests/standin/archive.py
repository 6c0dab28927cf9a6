"""Stand-in web archive over HTTP: availability call, index (CDX) and raw copies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import parse_qs

from tests.standin.web import Reply, StandInWeb, Visit

STAMP = "%Y%m%d%H%M%S"


class StandInArchive(StandInWeb):
    """Archive of ``copies``: by URL, the HTML of each timestamp.

    ``has_availability``: the availability call returns them. ``failing``: status by path prefix, returned instead.
    """

    def __init__(self, copies: Mapping[str, Mapping[str, str]], *, has_availability: bool = True) -> None:
        super().__init__()
        self.has_availability = has_availability
        self.failing: dict[str, int] = {}
        self.copies = {url: dict(stamps) for url, stamps in copies.items()}
        self.pages["/wayback/available"] = self._available
        self.pages["/cdx/search/cdx"] = self._index
        for url, stamps in copies.items():
            for stamp, html in stamps.items():
                path = f"/web/{stamp}id_/{url}".partition("?")[0]
                self.pages[path] = lambda visit, html=html: self._unless_failing(visit, Reply.html(html))

    def queries(self, path: str) -> list[dict[str, str]]:
        """Return the queries of all visits to a path, in order."""
        found = (visit.target.partition("?")[2] for visit in self.visits if visit.path == path)
        return [{name: values[-1] for name, values in parse_qs(query).items()} for query in found]

    def _available(self, visit: Visit) -> Reply:
        query = _query(visit)
        closest = self._closest(query["url"], query["timestamp"]) if self.has_availability else None
        snapshots = {}
        if closest is not None:
            place = f"http://web.archive.org/web/{closest}/{query['url']}"
            snapshots = {"closest": {"status": "200", "available": True, "url": place, "timestamp": closest}}
        return self._unless_failing(visit, _json({"url": query["url"], "archived_snapshots": snapshots}))

    def _index(self, visit: Visit) -> Reply:
        query = _query(visit)
        assert query["filter"] == "statuscode:200"
        stamps = sorted(self.copies.get(query["url"], {}), key=lambda each: abs(_time(each) - _time(query["closest"])))
        rows = [["timestamp", "statuscode"], *([stamp, "200"] for stamp in stamps)] if stamps else []
        return self._unless_failing(visit, _json(rows))

    def _closest(self, url: str, wanted: str) -> str | None:
        return min(self.copies.get(url, {}), key=lambda each: abs(_time(each) - _time(wanted)), default=None)

    def _unless_failing(self, visit: Visit, reply: Reply) -> Reply:
        status = next((status for path, status in self.failing.items() if visit.path.startswith(path)), None)
        return reply if status is None else Reply(status=status, body=b"busy")


def _query(visit: Visit) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(visit.target.partition("?")[2]).items()}


def _json(document: object) -> Reply:
    return Reply(headers={"Content-Type": "application/json"}, body=json.dumps(document).encode())


def _time(stamp: str) -> datetime:
    return datetime.strptime(stamp, STAMP)  # noqa: DTZ007 - only differences count
