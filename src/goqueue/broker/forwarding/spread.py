"""The services of a broker that is one of several nodes: what they cannot do here they ask of others."""

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.holding import SpreadHeld
from goqueue.broker.forwarding.homes import Homes
from goqueue.broker.forwarding.moving import SpreadMoves
from goqueue.broker.forwarding.owners import SpreadOwners
from goqueue.broker.forwarding.places import SpreadPlaces
from goqueue.broker.forwarding.producing import SpreadProducers
from goqueue.broker.forwarding.readers import SpreadReaders
from goqueue.broker.forwarding.receiving import SpreadReceiver
from goqueue.broker.forwarding.seeking import SpreadReplays
from goqueue.broker.forwarding.sending import SpreadSender
from goqueue.broker.forwarding.settling import SpreadSettler
from goqueue.ports.peers import Peers


def spread(broker: Broker, peers: Peers, homes: Homes | None = None) -> Forwarding:
    """Called once, in a cluster only. Give `handle` of what it returns to the peer door, and itself to the gate."""
    found = homes or Homes(broker.identity.node_id, lambda: broker.topics.image, broker.topics.opens)
    forwarding = Forwarding(peers, found, broker.clock)
    broker.topics.elsewhere = lambda topic, partition: found.partition(topic, partition) != found.me
    broker.topics.on_change.append(lambda _change: forwarding.image_changed())
    SpreadSender(forwarding, broker.sender)
    SpreadSettler(forwarding, broker.settler, broker.queues)
    SpreadPlaces(forwarding, broker.queues, broker.members.progress, broker.topics)
    SpreadHeld(forwarding, broker.queues)
    SpreadMoves(forwarding, broker.moves)
    SpreadReceiver(forwarding, broker.receiver)
    SpreadReplays(forwarding, broker.replays, broker.queues)
    SpreadReaders(forwarding, broker.lag)
    SpreadProducers(forwarding, broker.transaction_steps)
    SpreadOwners(forwarding, broker.transaction_steps, broker.transactions)
    return forwarding
