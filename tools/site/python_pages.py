"""What the Python packages give to their users, from signatures and docstrings."""

import inspect
import re
from importlib import import_module
from types import ModuleType
from typing import Any

LINE_MAX = 100
MODULES = ("goqueue.client", "goqueue.client.sync", "goqueue.testing", "goqueue.spark")


def python_pages() -> dict[str, str]:
    return {f"reference/python/{name.replace('.', '-')}.md": _page(import_module(name)) for name in MODULES}


def _page(module: ModuleType) -> str:
    lines = [f"# {module.__name__}", "", *_doc(module)]
    for name in _names(module):
        lines += _entry(name, getattr(module, name))
    return "\n".join(lines)


def _names(module: ModuleType) -> list[str]:
    found = getattr(module, "__all__", None)
    own = [name for name, each in vars(module).items() if getattr(each, "__module__", "") == module.__name__]
    return sorted(each for each in (own if found is None else found) if not each.startswith("_"))


def _entry(name: str, value: Any) -> list[str]:
    if not callable(value):
        return [f"## {name}", "", f"`{value!r}`", ""]
    lines = [f"## {name}", "", *_signature(name, value), *_doc(value)]
    if inspect.isclass(value) and not issubclass(value, BaseException):
        for method, each in sorted(vars(value).items()):
            if not method.startswith("_") and (callable(each) or isinstance(each, property)):
                is_call = not isinstance(each, property)
                lines += [f"### {name}.{method}", "", *(_signature(method, each) if is_call else []), *_doc(each)]
    return lines


def _signature(name: str, value: Any) -> list[str]:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return []
    told, star = [], False
    for each in signature.parameters.values():
        if each.name == "self":
            continue
        star = star or each.kind is each.VAR_POSITIONAL
        if each.kind is each.KEYWORD_ONLY and not star:
            told.append("*")
            star = True
        told.append(_parameter(each))
    begin = "async " if inspect.iscoroutinefunction(value) else ""
    gives = signature.return_annotation
    end = "" if gives in (signature.empty, None, "None") else f" -> {_type(gives)}"
    whole = f"{begin}{name}({', '.join(told)}){end}"
    if len(whole) > LINE_MAX:
        whole = f"{begin}{name}(\n" + "".join(f"    {each},\n" for each in told) + f"){end}"
    return ["```python", whole, "```", ""]


def _parameter(each: inspect.Parameter) -> str:
    stars = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
    of = "" if each.annotation is each.empty else f": {_type(each.annotation)}"
    default = "" if each.default is each.empty else f" = {each.default!r}"
    return f"{stars}{each.name}{of}{default}"


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text).replace("~", "")


def _doc(value: Any) -> list[str]:
    own = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
    words = inspect.cleandoc(own or "")
    return [words, ""] if words and not words.startswith(f"{getattr(value, '__name__', '')}(") else []
