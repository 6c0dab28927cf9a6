"""Google Maps for judge scripts: places, distances and travel times."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from mind2web2.asked_once import asked_once
from mind2web2.outside import outside

__all__ = ["GoogleMapsTool"]

CITY_NOT_FOUND: Final = "City/Sub-city name not found"
DISTANCE_NOT_FOUND: Final = "Distance not found"
TIME_NOT_FOUND: Final = "Travel time not found"
_LEVELS = ("locality", "sublocality")
_MODES = ("driving", "walking", "transit")


class GoogleMapsTool:
    """Asks the Maps API by the key in GOOGLE_MAPS_API_KEY. ``client`` is a ``googlemaps.Client``, or where
    the key is out of reach what asks through one.

    What the API refuses gets out as ``googlemaps.exceptions``; what it does not know is said in words.
    """

    def __init__(self, *, base_url: str = "https://maps.googleapis.com", timeout_s: float = 20.0) -> None:
        """``timeout_s`` is for one request; retries after faults of the API end after twice that.

        Raises:
            ValueError: there is no key, or it is none of Google's.
        """
        self.client: Any = outside().maps(base_url=base_url, timeout_s=timeout_s)

    async def get_city_name(self, address: str, level: str = "locality") -> str:
        """The name of the city ("locality") or part of a city ("sublocality") an address lies in.

        Raises:
            AssertionError: another level.
        """
        _check(level, _LEVELS, "level")
        for place in await self.get_address_information(address):
            for component in place.get("address_components", ()):
                if level in component.get("types", ()):
                    return str(component["long_name"])
        return CITY_NOT_FOUND

    async def get_address_information(self, address: str) -> list[Any]:
        """What the geocoding API says about an address: its list of results, best first."""
        found: list[Any] = await asked_once(
            ("geocode", address), lambda: asyncio.to_thread(self.client.geocode, address)
        )
        return found

    async def calculate_distance(self, address1: str, address2: str, mode: str = "driving") -> int | str:
        """Metres by road between two addresses.

        Raises:
            AssertionError: a mode other than driving, walking and transit.
        """
        return await self._route(address1, address2, mode, "distance", DISTANCE_NOT_FOUND)

    async def calculate_travel_time(self, address1: str, address2: str, mode: str = "driving") -> int | str:
        """Seconds to get from one address to another.

        Raises:
            AssertionError: a mode other than driving, walking and transit.
        """
        return await self._route(address1, address2, mode, "duration", TIME_NOT_FOUND)

    async def _route(self, start: str, end: str, mode: str, field: str, not_found: str) -> int | str:
        _check(mode, _MODES, "mode")
        matrix = await asked_once(
            ("distance_matrix", start, end, mode),
            lambda: asyncio.to_thread(self.client.distance_matrix, start, end, mode=mode),
        )
        rows = matrix.get("rows") or [{}]
        elements = rows[0].get("elements") or [{}]
        value = elements[0].get(field, {}).get("value")
        return not_found if value is None else int(value)


def _check(value: str, allowed: tuple[str, ...], what: str) -> None:
    if value not in allowed:
        raise AssertionError(f"{what} must be one of {', '.join(allowed)}, not {value!r}")
