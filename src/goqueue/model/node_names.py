"""What nodes are called in their certificates. That the authority of the cluster has signed one proves that its owner
is a node; the name in it proves which.
"""

from goqueue.model.certificate_names import PrincipalRule

_RULE = r"dns=goqueue-node-([0-9]+)->\1"
NODE_RULES = (PrincipalRule.parse(_RULE),)


def node_dns_name(node_id: int) -> str:
    """That stands among the alternative names of its certificate."""
    return f"goqueue-node-{node_id}"


def node_principal(node_id: int) -> str:
    return f"Node:{node_id}"
