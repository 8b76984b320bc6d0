"""The one exception of this package: input that a strict reader must refuse, and by which rule."""


class Refused(Exception):
    """Input was refused. `rule` names the rule that was broken, in the words of the vectors' flags."""

    def __init__(self, rule, detail=""):
        super().__init__(f"{rule}: {detail}" if detail else rule)
        self.rule = rule


def require(condition, rule, detail=""):
    """Refuses by `rule` unless `condition` holds."""
    if not condition:
        raise Refused(rule, detail)
