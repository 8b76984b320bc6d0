"""Medians and quartiles, of samples and of ratios that were taken in the same round."""

import dataclasses
import statistics


@dataclasses.dataclass
class Spread:
    """A median, and the quartiles around it."""

    low: float
    middle: float
    high: float

    def of(self, whole):
        """The same as parts of a number."""
        return Spread(self.low / whole, self.middle / whole, self.high / whole)


def spread(values):
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    return Spread(*statistics.quantiles(values, n=4, method="inclusive"))


def ratio(ours, theirs):
    """How many times theirs ours is: the ratio of each round by itself, so that work beside the run meets both."""
    return spread([one / other for one, other in zip(ours, theirs, strict=True)])
