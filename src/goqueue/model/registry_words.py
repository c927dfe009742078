"""What the registry answers, in the words of Confluent's: clients and their tests look at them."""

SCHEMA_NOT_FOUND = "Schema not found"


def subject_not_found(subject: str) -> str:
    return f"Subject '{subject}' not found."


def version_not_found(version: int | str) -> str:
    return f"Version {version} not found."


def schema_not_found(schema_id: int) -> str:
    return f"Schema {schema_id} not found"


def subject_deleted(subject: str) -> str:
    return f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently"


def subject_not_deleted(subject: str) -> str:
    return f"Subject '{subject}' was not deleted first before being permanently deleted"


def version_deleted(subject: str, version: int) -> str:
    return f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to delete permanently"


def version_not_deleted(subject: str, version: int) -> str:
    return f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"


def no_own_level(subject: str) -> str:
    return f"Subject '{subject}' does not have subject-level compatibility configured"


def no_own_mode(subject: str) -> str:
    return f"Subject '{subject}' does not have subject-level mode configured"


def incompatible(subject: str, level: str, problems: str) -> str:
    return (
        f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
        f"details: [{problems}], compatibility: {level}"
    )


def invalid_schema(why: str) -> str:
    return f"Invalid schema: {why}"


def invalid_version(version: str) -> str:
    return (
        f"The specified version '{version[:40]}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"'
    )


def invalid_subject(subject: str, why: str) -> str:
    return f"The specified subject '{subject[:40]}' is not a valid subject: {why}"


def invalid_level(text: str | None, levels: str) -> str:
    return f"Invalid compatibility level {text!r}. Valid values are {levels}"


def invalid_mode(text: str, modes: str) -> str:
    return f"Invalid mode {text!r}. Valid values are {modes}"


def in_mode(subject: str, mode: str) -> str:
    return f"Subject {subject} is in {'read-only' if mode.startswith('READONLY') else mode.lower()} mode"


def id_does_not_match(known: int | None, wanted: int) -> str:
    return f"Schema already registered with id {known} instead of input id {wanted}"


def referenced(subject: str, version: int, by_schema: int) -> str:
    return f"One or more references exist to the schema {{subject={subject},version={version}}}, by schema {by_schema}"
