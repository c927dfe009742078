"""The certificates of all listeners: looked at now and then, replaced when their files change, kept when they break."""

import asyncio
from datetime import UTC, datetime

from goqueue.model.certificate_names import PrincipalRule
from goqueue.node.listeners import Plan
from goqueue.ports.listening import Listening
from goqueue.ports.network import Network
from goqueue.ports.tls import BadCertificate, ServerTls
from goqueue.ports.tls_network import Handshakes, TlsListening
from goqueue.telemetry.logs import get_logger
from goqueue.telemetry.meters import Meters

LOOK_S = 10.0
COMPLAINTS_PER_MINUTE = 10

events = get_logger("tls")


class Certificates:
    def __init__(self, rules: tuple[PrincipalRule, ...], *, shares_ports: bool = False) -> None:
        """`shares_ports`: see `NodePorts`."""
        self._rules = rules
        self._shares_ports = shares_ports
        self._known: dict[str, ServerTls] = {}
        self._broken: dict[str, str] = {}
        """What was said of files that cannot be used, so that it is said once."""
        self._asked = asyncio.Event()
        self._complaints = 0
        self._complaints_since_s = 0.0
        self.handshakes = Handshakes(self._handshake_failed)

    def tell(self, meters: Meters) -> None:
        meters.certificates, meters.handshakes = self._remaining_s, self.handshakes.counts

    def _remaining_s(self) -> dict[str, float]:
        now = datetime.now(UTC)
        return {name: (tls.expires - now).total_seconds() for name, tls in self._known.items()}

    def listening(self, plan: Plan, network: Network) -> Listening:
        """BadCertificate: it cannot be opened."""
        if plan.files is None:
            return Listening(plan.listener, network)
        tls = self.add(f"{plan.listener.api}/{plan.listener.name}", ServerTls(plan.files, plan.listener.client_auth))
        network = TlsListening(tls.front, self.handshakes, shares_ports=self._shares_ports)
        return Listening(plan.listener, network, tls, self._rules)

    def add(self, name: str, tls: ServerTls) -> ServerTls:
        self._known[name] = tls
        self._warn_if_expired(name, tls)
        return tls

    def look_soon(self) -> None:
        self._asked.set()

    async def keep_fresh(self) -> None:
        while True:
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._asked.wait()
            except TimeoutError:
                pass
            self._asked.clear()
            await self.look()

    async def look(self) -> None:
        for name, tls in self._known.items():
            try:
                is_new = await asyncio.to_thread(tls.load)
            except BadCertificate as error:
                if self._broken.get(name) != str(error):
                    self._broken[name] = str(error)
                    events.error("certificate not replaced: the old one stays", listener=name, reason=str(error))
                continue
            self._broken.pop(name, None)
            if is_new:
                self._warn_if_expired(name, tls)
                events.info("certificate replaced", listener=name, expires=tls.expires.isoformat())

    def _warn_if_expired(self, name: str, tls: ServerTls) -> None:
        if tls.expires < datetime.now(UTC):
            events.error("the certificate has expired", listener=name, expires=tls.expires.isoformat())

    def _handshake_failed(self, peer: str, why: str) -> None:
        """Counted always, logged within reason: a babbler must not fill the disk."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._complaints_since_s > 60:
            self._complaints, self._complaints_since_s = 0, now_s
        self._complaints += 1
        if self._complaints <= COMPLAINTS_PER_MINUTE:
            events.warning("TLS handshake failed", peer=peer, reason=why)
