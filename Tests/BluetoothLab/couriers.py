"""A phone is revoked, and the lock learns it from another one that visits it, over each transport of Bluetooth."""

import served
from served import KINDS, Tried, expect_accepted


def observe(lab):
    return served.run(lab, "couriers.sh")


def learns(seen):
    """over each transport, a lock learns from one phone that another one is revoked, and refuses it from then on"""
    for kind in KINDS:
        expect_accepted(seen, f"{kind}-before", f"{kind}-unheard")
        Tried(seen, f"{kind}-courier").expect(0, '"bulletins_delivered":1')
        Tried(seen, f"{kind}-revoked").expect(1, "status: denied, tokenRevoked")


CHECKS = [learns]
