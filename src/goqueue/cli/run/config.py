"""`goqueue config`: kubectl's idea of contexts, in `~/.goqueue/config.yaml`."""

from pathlib import Path

from goqueue.cli.call import Call
from goqueue.cli.contexts import DEFAULT_NAME, FILES, HIDDEN, Contexts, resolve
from goqueue.cli.logins import FILES_OF_LOGINS, SECRETS, ask_password, put_login
from goqueue.cli.output import Column
from goqueue.cli.values import duration_ms


def view(call: Call) -> None:
    contexts = Contexts()
    target = resolve(call.given, contexts)
    login = target.login
    key = HIDDEN if login.api_key is not None else None
    if call.given.raw and login.api_key is not None:
        key = login.api_key.reveal()
    more = {"user": login.user, "sasl": login.sasl, "token-file": login.token_file, "kafka": target.kafka}
    now = {
        "server": target.server,
        "api-key": key,
        **{name: value for name, value in more.items() if value is not None},
        "timeout": f"{target.timeout_ms / 1000:g}s",
        "context": target.context,
        **({} if target.tenant is None else {"tenant": target.tenant}),
        "told-by": dict(target.sources),
    }
    call.out.facts({"file": str(contexts.path), **contexts.as_dict(with_keys=call.given.raw), "now": now})


def get_contexts(call: Call) -> None:
    contexts = Contexts()
    rows = [
        {
            "name": name,
            "current": name == contexts.current,
            "server": context.get("server"),
            "timeout": context.get("timeout"),
            "has-api-key": "api-key" in context or "api-key-file" in context,
            "user": context.get("user"),
        }
        for name, context in sorted(contexts.contexts.items())
    ]
    columns = (
        Column("CURRENT", lambda each: "*" if each["current"] else ""),
        Column("NAME", lambda each: each["name"], is_name=True),
        Column("SERVER", lambda each: each["server"]),
        Column("TIMEOUT", lambda each: each["timeout"]),
        Column("API KEY", lambda each: "set" if each["has-api-key"] else None),
        Column("USER", lambda each: each["user"]),
    )
    advice = f"no contexts yet; make one with: goqueue config set-context {DEFAULT_NAME} --server URL"
    call.out.rows(rows, columns, nothing=advice)


def use_context(call: Call) -> None:
    contexts = Contexts()
    server = contexts.named(call.given.name).get("server", "the default server")
    contexts.current = call.given.name
    contexts.save()
    call.out.done(f"from now on commands ask {server} ({call.given.name})", {"current-context": call.given.name})


def set_context(call: Call) -> None:
    given = call.given
    contexts = Contexts()
    is_new = given.name not in contexts.contexts
    context = contexts.contexts.setdefault(given.name, {})
    if given.timeout is not None:
        duration_ms(given.timeout)
    told = {name: getattr(given, name) for name in ("server", "timeout", "tenant", "user", "sasl", "kafka")}
    told |= {name: _absolute(getattr(given, name.replace("-", "_"))) for name in (*FILES, *FILES_OF_LOGINS)}
    told["tls"] = given.tls or None
    put_login(context, {name: value for name, value in told.items() if value is not None}, f"context {given.name}")
    if is_new and "server" not in context:
        given.refuse("a new context needs --server")
    if given.password:
        context.pop("password-file", None)
        context["password"] = ask_password(context.get("user") or given.refuse("--password is that of --user"))
    if contexts.current is None:
        contexts.current = given.name
    contexts.save()
    shown = {name: value for name, value in context.items() if name not in SECRETS}
    call.out.done(f"{'made' if is_new else 'changed'} context {given.name}", {"name": given.name, **shown})


def _absolute(file: str | None) -> str | None:
    """A context is used in other directories, too."""
    return None if file is None else str(Path(file).expanduser().absolute())


def delete_context(call: Call) -> None:
    contexts = Contexts()
    contexts.named(call.given.name)
    del contexts.contexts[call.given.name]
    if contexts.current == call.given.name:
        contexts.current = None
    contexts.save()
    call.out.done(f"deleted context {call.given.name}", {"name": call.given.name, "deleted": True})
