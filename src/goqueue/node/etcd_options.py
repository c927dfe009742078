"""How a node reaches its etcd, from its settings. What cannot be read stops the start, not the first reconnect."""

from pathlib import Path

from goqueue.cluster.etcd.endpoints import EtcdOptions
from goqueue.model.errors import InvalidSettings
from goqueue.model.secret import Secret
from goqueue.node.settings import Settings


def etcd_options(settings: Settings) -> EtcdOptions:
    """InvalidSettings: a file cannot be read, or half of a pair is missing."""
    problems = []
    pairs = (("etcd_user", "etcd_password_file"), ("etcd_cert_file", "etcd_key_file"))
    for pair in pairs:
        given = [name for name in pair if getattr(settings, name) is not None]
        if len(given) == 1:
            (missing,) = set(pair) - set(given)
            problems.append(f"{given[0]} needs {missing}")
    texts: dict[str, str] = {}
    for name in ("etcd_password_file", "etcd_ca_file", "etcd_cert_file", "etcd_key_file"):
        path: Path | None = getattr(settings, name)
        if path is None:
            continue
        try:
            texts[name] = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{name} = {path}: {getattr(error, 'strerror', None) or 'not a text'}")
    if problems:
        raise InvalidSettings("\n".join(problems))
    return EtcdOptions(
        settings.etcd,
        user=settings.etcd_user or "",
        password=Secret(texts.get("etcd_password_file", "").rstrip("\r\n")),
        ca_file=settings.etcd_ca_file,
        cert_file=settings.etcd_cert_file,
        key_file=settings.etcd_key_file,
    )
