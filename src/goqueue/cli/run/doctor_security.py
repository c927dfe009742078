"""`goqueue doctor --security`: what about a node and its settings lets others in, and what to do about it."""

import os
import resource
import stat
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from goqueue.cli.call import Call
from goqueue.cli.run.doctor import FAIL, OK, WARN, Finding
from goqueue.client import ClientError
from goqueue.model.access import EVERYBODY
from goqueue.model.errors import InvalidSettings
from goqueue.node.listeners import exposed, plans
from goqueue.node.master_key import read_master_keys
from goqueue.node.settings import Settings, read_settings
from goqueue.node.values import Switch
from goqueue.wire.rest.accounts import Keys
from goqueue.wire.rest.operations import accounts as operations

DAYS_MIN, DAYS_GOOD = 7, 30
UNUSED_DAYS_MAX = 90
DAY_MS = 24 * 60 * 60 * 1000
RSA_BITS_GOOD = 2048
OTHERS = stat.S_IRWXG | stat.S_IRWXO
SWAPS = Path("/proc/swaps")
SECRETS = (
    "bootstrap_key_file",
    "master_key_file",
    "tls_key_file",
    "tls_key_password_file",
    "peer_key_file",
    "etcd_key_file",
    "etcd_password_file",
    "oidc_client_secret_file",
)
"""Settings that name files with secrets."""


async def look_at_security(call: Call) -> list[Finding]:
    """Of the node that these settings, the environment and --config would start; and of the one that runs."""
    try:
        settings = read_settings({"data_dir": call.given.data_dir}, config=call.given.config)
    except InvalidSettings as error:
        return [Finding("settings", FAIL, str(error), "mend them: a node does not start with these")]
    found = [*look_at_ways_in(settings), *await _look_at_listeners(settings), *look_at_certificates(settings)]
    found += [*look_at_files(settings), *look_at_machine()]
    return found + await _look_at_accounts(call)


def look_at_ways_in(settings: Settings) -> Iterator[Finding]:
    if settings.insecure is Switch.ON:
        yield Finding("insecure", FAIL, "--insecure is on: others may come in without TLS or unasked", "take it away")
    if settings.dev is Switch.ON:
        yield Finding("dev", WARN, "--dev is on: everybody on this machine is an admin", "start it without --dev")
    if settings.is_closed:
        yield Finding("authentication", OK, "clients have to show who they are")
    else:
        yield Finding("authentication", FAIL, "whoever can connect is an admin", "say --authentication on")
    if settings.master_key_file is None:
        advice = "make one: openssl rand -hex 32 > master.key && chmod 600 master.key; name it with master_key_file"
        yield Finding("master key", WARN, "there is none: what passwords are checked by is not sealed", advice)


async def _look_at_listeners(settings: Settings) -> list[Finding]:
    try:
        found = await exposed(settings)
    except OSError as error:
        return [Finding("listeners", FAIL, f"an address is not known: {error.strerror}", "mend it")]
    lacking = [each for each in found if each.lacks]
    if not lacking:
        return [Finding("listeners", OK, f"{len(found)} that others can reach, all with TLS and authentication")]
    return [Finding("listeners", FAIL, f"{each.where} lacks {each.lacks}", "see docs/security.md") for each in lacking]


def look_at_certificates(settings: Settings) -> Iterator[Finding]:
    for path in {plan.files.cert: None for plan in plans(settings) if plan.files is not None}:
        try:
            cert = x509.load_pem_x509_certificate(Path(path).read_bytes())
        except (OSError, ValueError) as error:
            yield Finding("certificate", FAIL, f"{path}: {error}", "name a certificate in PEM")
            continue
        days, key = (cert.not_valid_after_utc - datetime.now(UTC)).days, cert.public_key()
        is_short = isinstance(key, RSAPublicKey) and key.key_size < RSA_BITS_GOOD
        words = f"{path}: {days} days left{', a short RSA key' if is_short else ''}"
        if days < DAYS_MIN:
            yield Finding("certificate", FAIL, words, "renew it; a running node takes the new file by itself")
        elif days < DAYS_GOOD or is_short:
            yield Finding("certificate", WARN, words, "renew it soon, with an RSA key of 2048 bits or an EC key")
        else:
            yield Finding("certificate", OK, words)


def look_at_files(settings: Settings) -> Iterator[Finding]:
    files: dict[str, Path | None] = {name: getattr(settings, name) for name in SECRETS}
    files |= {f"key_file of {plan.listener.name}": Path(plan.files.key) for plan in plans(settings) if plan.files}
    for name, path in files.items():
        if path is None or (path == settings.tls_key_file and name != "tls_key_file"):
            continue
        try:
            mode = path.stat().st_mode
        except OSError as error:
            yield Finding("files", FAIL, f"{name} = {path}: {error.strerror}", "mend the setting or the file")
            continue
        if mode & OTHERS:
            yield Finding("files", FAIL, f"{name} = {path}: others may read it", f"chmod 600 {path}")
        else:
            yield Finding("files", OK, f"{name} = {path}: its owner's only")
    if settings.master_key_file is not None:
        try:
            read_master_keys(settings.master_key_file, settings.data_dir)
        except InvalidSettings as error:
            yield Finding("master key", FAIL, str(error), "mend it: a node does not start with it")
    if settings.data_dir.is_dir() and settings.data_dir.stat().st_mode & OTHERS:
        advice = f"chmod 700 {settings.data_dir}"
        yield Finding("data directory", WARN, f"others may look into {settings.data_dir}", advice)


def look_at_machine() -> Iterator[Finding]:
    """Where memory, and secrets in it, may end up on a disk."""
    soft, _ = resource.getrlimit(resource.RLIMIT_CORE)
    if soft:
        yield Finding("core dumps", WARN, "a crash writes memory to a file", "ulimit -c 0, or LimitCORE=0 in systemd")
    else:
        yield Finding("core dumps", OK, "are off")
    try:
        swaps = SWAPS.read_text("utf-8").splitlines()[1:]
    except OSError:
        return  # not Linux
    if swaps:
        yield Finding("swap", WARN, f"is on: {', '.join(each.split()[0] for each in swaps)}", "encrypt it, or swapoff")
    else:
        yield Finding("swap", OK, "is off")
    if os.geteuid() == 0:
        yield Finding("user", WARN, "this is root", "run a node as a user of its own")


def look_at_keys(listed: Keys, now_ms: int) -> Iterator[Finding]:
    for key in listed.keys:
        used_ms = key.last_used_at or max(listed.since, key.created_at)
        if key.is_bootstrap:
            yield Finding("first key", FAIL, f"{key.id} is still alive", "make an admin, which ends it")
        elif now_ms - used_ms > UNUSED_DAYS_MAX * DAY_MS:
            words = f"{key.id} ({key.name}) was not used for {(now_ms - used_ms) // DAY_MS} days"
            yield Finding("keys", WARN, words, f"goqueue key delete {key.id}")
        elif key.expires_at is None:
            advice = f"make one with --expires-in, and: goqueue key delete {key.id}"
            yield Finding("keys", WARN, f"{key.id} ({key.name}) does not expire", advice)


async def _look_at_accounts(call: Call) -> list[Finding]:
    try:
        listed = await call.admin.call(operations.LIST_KEYS)
        rules = (await call.admin.call(operations.LIST_ACLS)).acls
    except ClientError as error:
        advice = "run a node, and give an admin's key with GOQUEUE_API_KEY or --api-key-file"
        return [Finding("accounts", WARN, f"cannot be looked at: {error}", advice)]
    found = list(look_at_keys(listed, int(time.time() * 1000)))
    for rule in rules:
        if rule.principal == EVERYBODY and rule.effect == "allow":
            words = f"rule {rule.id} allows everybody to {rule.operation} {rule.resource_type} {rule.resource_name}"
            found.append(Finding("rules", WARN, words, f"name users: goqueue acl delete {rule.id}"))
    return found or [Finding("accounts", OK, f"{listed.count} keys, {len(rules)} rules, nothing to mend")]
