"""The one exception of this package: input that a strict reader must refuse, and by which rule; and what strict readers have in common."""


class Refused(Exception):
    """Input was refused. `rule` names the rule that was broken, in the words of the vectors' flags."""

    def __init__(self, rule, detail=""):
        super().__init__(f"{rule}: {detail}" if detail else rule)
        self.rule = rule


def require(condition, rule, detail=""):
    """Refuses by `rule` unless `condition` holds."""
    if not condition:
        raise Refused(rule, detail)


def require_uint(value):
    """The value, which must be an unsigned integer."""
    require(isinstance(value, int) and not isinstance(value, bool) and value >= 0, "WrongType")
    return value


def require_list(value, count):
    """The value, which must be an array of `count` elements."""
    require(isinstance(value, list), "WrongType")
    require(len(value) == count, "WrongCount")
    return value


def require_range(value, least, most):
    """The value, which must be an integer from `least` to `most`."""
    require_uint(value)
    require(least <= value <= most, "OutOfRange")
    return value


def require_bytes(value, *sizes):
    """The value, which must be a byte string of one of these lengths."""
    require(isinstance(value, bytes), "WrongType")
    require(len(value) in sizes, "WrongSize")
    return value


def require_text(value, most):
    """The value, which must be a text of at most `most` bytes."""
    require(isinstance(value, str), "WrongType")
    require(len(value.encode()) <= most, "TextTooLong")
    return value


def unless_null(value, check):
    """What `check` gives for the value; None if that is null."""
    return None if value is None else check(value)
