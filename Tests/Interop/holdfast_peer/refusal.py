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
