"""Statuses by name."""

from holdfast_peer import session

NAMES = {number: name for name, number in session.STATUS.items()}


def name(status):
    return NAMES[status]


def name_in(m3):
    """Of a verdict, whatever is sealed in it."""
    return name(session.parse_message_3(m3)["status"])
