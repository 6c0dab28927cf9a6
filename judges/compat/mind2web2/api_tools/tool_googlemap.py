"""Google Maps for task scripts: places, distances and travel times."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from mind2web2.external_services import external_services
from mind2web2.tool_faults import ToolNotConfigured, lose_tool, recorded_maps_fault

__all__ = ["GoogleMapsTool"]

CITY_NOT_FOUND: Final = "City/Sub-city name not found"
DISTANCE_NOT_FOUND: Final = "Distance not found"
TIME_NOT_FOUND: Final = "Travel time not found"
_LEVELS = ("locality", "sublocality")
_MODES = ("driving", "walking", "transit")


class GoogleMapsTool:
    """Calls the Maps API with the key in GOOGLE_MAPS_API_KEY.

    ``client`` is a ``googlemaps.Client``, or a replacement that calls the service if this process has no key. Errors of
    the API are raised as ``googlemaps.exceptions``. If the API finds nothing, the methods return a text that says so.
    """

    def __init__(self, *, base_url: str = "https://maps.googleapis.com", timeout_s: float = 20.0) -> None:
        """``timeout_s`` is for one request; retries after API faults end after twice that time.

        Raises:
            ValueError: there is no key, or it is not a Google key.
        """
        try:
            self.client: Any = external_services().maps(base_url=base_url, timeout_s=timeout_s)
        except ValueError as error:
            lose_tool(f"Google Maps: {error}")
            raise ToolNotConfigured(str(error)) from error

    async def get_city_name(self, address: str, level: str = "locality") -> str:
        """Return the city ("locality") or district ("sublocality") of an address.

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
        """Return the results of the geocoding API for an address, best first."""
        results: list[Any] = await _reply(self.client.geocode, address)
        return results

    async def calculate_distance(self, address1: str, address2: str, mode: str = "driving") -> int | str:
        """Return the distance by road between two addresses in metres.

        Raises:
            AssertionError: a mode other than driving, walking and transit.
        """
        return await self._route(address1, address2, mode, "distance", DISTANCE_NOT_FOUND)

    async def calculate_travel_time(self, address1: str, address2: str, mode: str = "driving") -> int | str:
        """Return the travel time between two addresses in seconds.

        Raises:
            AssertionError: a mode other than driving, walking and transit.
        """
        return await self._route(address1, address2, mode, "duration", TIME_NOT_FOUND)

    async def _route(self, start: str, end: str, mode: str, field: str, not_found: str) -> int | str:
        _check(mode, _MODES, "mode")
        matrix = await _reply(self.client.distance_matrix, start, end, mode=mode)
        rows = matrix.get("rows") or [{}]
        elements = rows[0].get("elements") or [{}]
        value = elements[0].get(field, {}).get("value")
        return not_found if value is None else int(value)


async def _reply(method: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    with recorded_maps_fault():
        return await asyncio.to_thread(method, *args, **keywords)


def _check(value: str, allowed: tuple[str, ...], parameter: str) -> None:
    if value not in allowed:
        raise AssertionError(f"{parameter} must be one of {', '.join(allowed)}, not {value!r}")
