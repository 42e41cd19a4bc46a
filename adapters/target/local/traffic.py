"""What a site's address leads to."""

from __future__ import annotations

from adapters.target.local.folders import Folders
from adapters.target.local.loopback import look
from adapters.target.local.proxy import Proxy
from adapters.target.local.supervisor import Supervisor
from adapters.target.local.units import UnitFolders, lock_of, settled
from domain.errors import MendworkError, Overtaken, PortTaken, ReleaseDied, ReleaseMissing, ReleaseSilent
from domain.kpi.probe import Probe
from domain.ports.target import ABSENT, DEAD, HEALTHY, Answered, Live, Site, Unit, UnitStatus

_SETTLE = 5.0


class SiteProxies:
    """The port's ``Traffic`` without asyncio: every method blocks. A unit that traffic goes back to has
    ``start_seconds`` to be healthy."""

    def __init__(
        self, folders: Folders, supervisor: Supervisor, units: UnitFolders, *, start_seconds: float = 30.0
    ) -> None:
        self._folders = folders
        self._supervisor = supervisor
        self._units = units
        self._start_seconds = start_seconds

    def current(self, site: Site) -> Live | None:
        """See the port."""
        proxy = self._proxy(site)
        return self._live(site, proxy, proxy.leads_to()[0])

    def switch(self, site: Site, to: int, *, expected: int) -> Live:
        """See the port."""
        unit = _unit(site, to)
        with self._folders.locked(lock_of(unit)):
            proxy = self._proxy(site)
            now = proxy.leads_to()[0]
            if now not in (to, expected):
                raise Overtaken(f"the traffic of {site.project} goes to release {now} instead of {expected}")
            self._supervisor.ensure()
            if now != to:
                self._serves(unit, seconds=min(_SETTLE, self._start_seconds))
            return self._lead(site, proxy, unit)

    def roll_back(self, site: Site, to: int) -> Live | None:
        """See the port."""
        proxy = self._proxy(site)
        with self._folders.locked(f"{site.project}.{site.environment}"):
            if to == 0:
                proxy.close()
                return None
            unit = _unit(site, to)
            self._supervisor.ensure()
            self._units.start(unit)
            self._serves(unit, seconds=self._start_seconds)
            return self._lead(site, proxy, unit)

    def health(self, site: Site, probe: Probe) -> Answered:
        """See the port."""
        port = self._proxy(site).port
        if not port:
            return Answered(ok=False, sentence="this site never had a release")
        seen = look(port, probe)
        return Answered(ok=seen.ok, release=seen.release, status=seen.status, sentence=seen.sentence)

    def _proxy(self, site: Site) -> Proxy:
        return Proxy(self._folders, self._supervisor, (site.project, site.environment))

    def _serves(self, unit: Unit, *, seconds: float) -> None:
        status = settled(self._units, unit, seconds=seconds)
        if status.state == HEALTHY:
            return
        what = f"release {unit.release} of {unit.project}"
        if status.state == ABSENT:
            raise ReleaseMissing(f"nothing is left of {what}")
        raise _fault(status)(f"{what} does not serve: {status.sentence}")

    def _lead(self, site: Site, proxy: Proxy, unit: Unit) -> Live:
        proxy.up(site.port)
        order = self._folders.order(unit)
        if order is None:
            raise ReleaseMissing(f"nothing is left of release {unit.release} of {unit.project}")
        proxy.lead(unit.release, order["port"])
        live = self._live(site, proxy, unit.release)
        assert live is not None  # noqa: S101 - the order was there a moment ago, and the site is locked
        return live

    def _live(self, site: Site, proxy: Proxy, release: int) -> Live | None:
        order = self._folders.order(_unit(site, release)) if release else None
        if order is None:
            return None
        return Live(
            release=release, artifact=order["artifact"], config=order["config"], url=f"http://127.0.0.1:{proxy.port}"
        )


def _unit(site: Site, release: int) -> Unit:
    return Unit(project=site.project, environment=site.environment, release=release)


def _fault(status: UnitStatus) -> type[MendworkError]:
    if status.kind == "PortTaken":
        return PortTaken
    return ReleaseDied if status.state == DEAD or status.kind == "ReleaseDied" else ReleaseSilent
