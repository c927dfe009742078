"""The audit trail of a node that asks clients who they are."""

from goqueue.broker.accounts.audit import AUDIT, RETENTION_MS, Audit
from goqueue.model.secret import Secret
from goqueue.node.listeners import plans
from goqueue.node.settings import Settings
from goqueue.replica.replicas import Replicas
from goqueue.runtime.clock import Clock

OVERRIDES = {"cleanup.policy": "delete", "durability": "disk", "retention.ms": str(RETENTION_MS)}


def open_audit(settings: Settings, replicas: Replicas, clock: Clock, secret: bytes) -> Audit | None:
    """None: everybody is the same here, so there is nothing to tell. LogPoisoned: without it no change can be made."""
    if not any(plan.listener.requires_authentication for plan in plans(settings)):
        return None
    replica = replicas.open_ledger(AUDIT, 0, OVERRIDES, clock.now_ms())
    return Audit(replica, clock, settings.node_id, settings.audit, Secret(secret))
