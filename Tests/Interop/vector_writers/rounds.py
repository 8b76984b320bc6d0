"""A round, with every value that either end computes."""

from holdfast_peer import session

from .token_cases import CLAIMS, DEVICE, DEVICE_ID
from .vector_file import pin


def round_fields(
    label,
    encoding,
    token,
    *,
    remembered=None,
    status=0,
    clock=1790000100,
    required=2,
    imp=True,
    request=None,
    plaintext=b"",
    top_bit=None,
):
    """The fields of a test of SessionRound."""
    for attempt in range(64):
        place = f"round/{label}/{attempt}"
        m1 = session.message_1(DEVICE_ID, pin(place + "/challenge", 16), DEVICE.kid, required, clock)
        prover_random = pin(place + "/random", 16)
        head = session.message_2_head(prover_random, encoding, token)
        made = session.Round(m1, head, CLAIMS["proofKey"], CLAIMS["device"])
        if top_bit is None or made.transcript[0] >> 7 == top_bit:
            break
    return {
        "m1": m1,
        "proverRandom": prover_random,
        "encoding": encoding,
        "token": token,
        **({} if remembered is None else {"rememberedToken": remembered}),
        "mpk": CLAIMS["proofKey"],
        "integrity": CLAIMS["integrity"],
        "device": CLAIMS["device"],
        "head": head,
        **derived_fields(
            made,
            head,
            imp=imp,
            request=session.request("unlock") if request is None else request,
            plaintext=session.result(b"unlocked") if plaintext == b"" else plaintext,
            status=status,
        ),
    }


def derived_fields(made, head, *, imp=True, request, plaintext, status):
    """The fields that follow from what both ends derive."""
    proofs = made.prove(CLAIMS["integrity"]) if imp else None, made.prove(CLAIMS["device"])
    return {
        "th": made.transcript,
        "nonce": made.nonce,
        "kProverToDevice": made.prover_to_device,
        "kDeviceToProver": made.device_to_prover,
        "imp": proofs[0],
        "dmp": proofs[1],
        "request": request,
        "m2": session.message_2(head, *proofs, made.seal_request(request)),
        "m3Plaintext": plaintext,
        "m3": session.message_3(status, None if plaintext is None else made.seal_result(status, plaintext)),
        "status": status,
    }
