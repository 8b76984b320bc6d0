"""A phone is revoked, and the lock learns it from another one that visits it, over each transport of Bluetooth; its log goes home."""

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


def reports(seen):
    """over each transport, the audit log goes home with a phone, names the transport, and is acknowledged at the lock by its next visit"""
    for kind in KINDS:
        Tried(seen, f"{kind}-courier").expect(0, '"audit_page_taken":true')
        Tried(seen, f"{kind}-handed-in").expect(0, '"pages_handed_in":1')
        Tried(seen, f"{kind}-at-home").expect(0, f'"missing":null.*"transport":"{kind}"')
        Tried(seen, f"{kind}-acknowledged").expect(0, r'"audit_acknowledged":[1-9]')


CHECKS = [learns, reports]
