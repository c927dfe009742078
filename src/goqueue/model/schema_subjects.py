"""Which subjects of the schema registry belong to a topic."""

from goqueue.model.topics import DEFAULTS, TopicOptions


def subjects_of(topic: str, options: TopicOptions) -> tuple[str, ...]:
    """Whose schemas the records of a topic may have; the first that has any says which is the latest."""
    named = options.schema_subject.replace("{topic}", topic)
    return (named, topic) if options.schema_subject == DEFAULTS.schema_subject else (named,)
