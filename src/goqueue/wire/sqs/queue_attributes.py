"""Attributes that a queue may be given: their names, ranges and defaults, and the two that hold a policy in JSON."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from goqueue.wire.sqs.checks import BYTES_MAX, DELAY_SECONDS_MAX, FIFO, VISIBILITY_SECONDS_MAX, WAIT_SECONDS_MAX
from goqueue.wire.sqs.errors import SqsError, invalid_parameter, invalid_value

NUMBERS: Mapping[str, tuple[int, int]] = {
    "DelaySeconds": (0, DELAY_SECONDS_MAX),
    "MaximumMessageSize": (1024, BYTES_MAX),
    "MessageRetentionPeriod": (60, 14 * 24 * 60 * 60),
    "ReceiveMessageWaitTimeSeconds": (0, WAIT_SECONDS_MAX),
    "VisibilityTimeout": (0, VISIBILITY_SECONDS_MAX),
}
CHOICES: Mapping[str, tuple[str, ...]] = {
    "ContentBasedDeduplication": ("true", "false"),
    "DeduplicationScope": ("queue", "messageGroup"),
    "FifoQueue": ("true",),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
}
ONLY_FIFO = tuple(CHOICES)
POLICIES = ("RedrivePolicy", "RedriveAllowPolicy")
NOT_OFFERED: Mapping[str, tuple[str, ...]] = {
    "Policy": ("",),
    "KmsMasterKeyId": ("",),
    "KmsDataKeyReusePeriodSeconds": ("300",),
    "SqsManagedSseEnabled": ("false",),
}
"""What cannot be had here, with the values that ask for nothing: who asks for more must not think that it is there."""
COUNTS = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed")
TOLD = ("QueueArn", "CreatedTimestamp", "LastModifiedTimestamp", *COUNTS)
SETTABLE = (*NUMBERS, *CHOICES, *POLICIES, *NOT_OFFERED)
DEFAULTS: Mapping[str, str] = {
    "DelaySeconds": "0",
    "MaximumMessageSize": str(BYTES_MAX),
    "MessageRetentionPeriod": str(4 * 24 * 60 * 60),
    "ReceiveMessageWaitTimeSeconds": "0",
    "VisibilityTimeout": "30",
}
FIFO_DEFAULTS: Mapping[str, str] = {
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "queue",
    "FifoQueue": "true",
    "FifoThroughputLimit": "perQueue",
}
RECEIVES_MAX = 200
"""Deliveries that are counted; SQS counts to 1000."""
RECEIVES_ALLOWED = 1000
TAGS_MAX = 50
TAG_KEY_CHARS_MAX, TAG_VALUE_CHARS_MAX = 128, 256


class Redrive(NamedTuple):
    """Where messages go that were received in vain, and after how many times."""

    target_arn: str
    receives_max: int


class RedrivePolicy(msgspec.Struct):
    deadLetterTargetArn: str | None = None  # noqa: N815  as SQS spells it
    maxReceiveCount: int | None = None  # noqa: N815


class RedriveAllowPolicy(msgspec.Struct):
    redrivePermission: str | None = None  # noqa: N815
    sourceQueueArns: list[str] = []  # noqa: N815


def unknown(name: str) -> SqsError:
    return SqsError("InvalidAttributeName", f"Unknown Attribute {name[:256]}.")


def check_queue_attributes(attributes: Mapping[str, str], is_fifo: bool) -> dict[str, str]:
    """Those that are to be kept, in their usual form; the policies are left as they are."""
    kept: dict[str, str] = {}
    for name, text in attributes.items():
        if name in NOT_OFFERED:
            if text not in NOT_OFFERED[name]:
                raise SqsError("UnsupportedOperation", f"GoQueue does not offer the attribute {name}.")
        elif name in NUMBERS:
            kept[name] = _number(name, text)
        elif name in CHOICES and is_fifo:
            if text not in CHOICES[name]:
                raise _invalid(name)
            kept[name] = text
        elif name in POLICIES:
            kept[name] = text
        else:
            raise unknown(name)
    return kept


def check_throughput(attributes: Mapping[str, str]) -> None:
    """Of all attributes of a queue together."""
    by_group = attributes.get("FifoThroughputLimit") == "perMessageGroupId"
    if by_group and attributes.get("DeduplicationScope") != "messageGroup":
        raise invalid_parameter(
            "The perMessageGroupId value is allowed only when the value for DeduplicationScope is messageGroup."
        )


def _number(name: str, text: str) -> str:
    least, most = NUMBERS[name]
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most):
        raise _invalid(name)
    return str(int(text))


def _invalid(name: str) -> SqsError:
    return SqsError("InvalidAttributeValue", f"Invalid value for the parameter {name}.")


def parse_redrive_policy(text: str) -> Redrive | None:
    """None: there shall be none."""
    if not text:
        return None
    try:
        policy = msgspec.json.decode(text, type=RedrivePolicy, strict=False)
    except msgspec.DecodeError:
        raise invalid_value(text[:1000], "RedrivePolicy", "Redrive policy is not a valid JSON map.") from None
    if policy.deadLetterTargetArn is None:
        raise _policy(text, "Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")
    if policy.maxReceiveCount is None:
        raise _policy(text, "Redrive policy does not contain mandatory attribute: maxReceiveCount.")
    if not 1 <= policy.maxReceiveCount <= RECEIVES_ALLOWED:
        raise _policy(
            text,
            f"Invalid value for maxReceiveCount: {policy.maxReceiveCount}, valid values are from 1 to "
            f"{RECEIVES_ALLOWED} both inclusive.",
        )
    return Redrive(policy.deadLetterTargetArn, min(policy.maxReceiveCount, RECEIVES_MAX))


def _policy(text: str, reason: str) -> SqsError:
    return invalid_value(text[:1000], "RedrivePolicy", reason)


def invalid_redrive(text: str, reason: str) -> SqsError:
    return _policy(text, reason)


def format_redrive_policy(target_arn: str, receives_max: int) -> str:
    return msgspec.json.encode(RedrivePolicy(target_arn, receives_max)).decode()


def parse_allow_policy(text: str) -> RedriveAllowPolicy | None:
    """None: everybody may."""
    if not text:
        return None
    try:
        policy = msgspec.json.decode(text, type=RedriveAllowPolicy)
    except msgspec.DecodeError:
        policy = RedriveAllowPolicy()
    is_named = bool(policy.sourceQueueArns)
    if policy.redrivePermission not in ("allowAll", "denyAll", "byQueue") or is_named != (
        policy.redrivePermission == "byQueue"
    ):
        raise invalid_value(text[:1000], "RedriveAllowPolicy", "Amazon SQS can't create the redrive allow policy.")
    return policy


def check_tags(tags: Mapping[str, str]) -> None:
    for key, value in tags.items():
        if not 0 < len(key) <= TAG_KEY_CHARS_MAX or key.lower().startswith("aws:"):
            raise invalid_parameter(
                f"Tag keys must be between 1 and {TAG_KEY_CHARS_MAX} characters and not begin with aws:."
            )
        if len(value) > TAG_VALUE_CHARS_MAX:
            raise invalid_parameter(f"Tag values must be between 0 and {TAG_VALUE_CHARS_MAX} characters.")
    if len(tags) > TAGS_MAX:
        raise invalid_parameter(f"Too many tags: a queue may have {TAGS_MAX}.")


def is_fifo_name(name: str) -> bool:
    return name.endswith(FIFO)
