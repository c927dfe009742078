"""Kafka's messages: classes that are their own schema (`messages/`), compiled into one codec per class and version.

A door reads `frames` (headers and whole frames) and `apis` (what is implemented); `codec` is for bare messages.
"""
