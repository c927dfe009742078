"""How a connection shows who it is, as state machines without a socket: SASL's PLAIN and SCRAM."""
