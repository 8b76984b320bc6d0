"""The peers in Python: `python_peer.py LIBRARY WORK FOLDER` answers as worker.h describes."""

import json
import pathlib
import sys
import time


def make(library, work, folder):
    """One repetition of the work, which returns whether its result is right."""
    if library == "pyotp":
        import pyotp

        secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
        if work == "hotp":
            return lambda: pyotp.HOTP(secret).at(0) == "755224"
        return lambda: pyotp.TOTP(secret, digits=8).at(59) == "94287082"
    token = (folder / ("token" if library == "pycose" else "token.jose")).read_bytes()
    if library == "pycose":
        return pycose(token, folder)
    device, issuer = ((folder / f"{name}.jwk").read_text() for name in ("device", "issuer"))
    integrity = (folder / "integrity").read_text()
    if library == "joserfc":
        from joserfc import jwe, jws
        from joserfc.jwk import ECKey

        device, issuer = (ECKey.import_key(json.loads(key)) for key in (device, issuer))
        text = token.decode()

        def open_token():
            inner = jwe.decrypt_compact(text, device, algorithms=["ECDH-ES", "A256GCM"]).plaintext
            claims = jws.deserialize_compact(inner, issuer, algorithms=["ES256"]).payload
            return json.loads(claims)["imh"] == integrity

        return open_token
    if library == "jwcrypto":
        from jwcrypto import jwe, jwk, jws

        device, issuer = (jwk.JWK.from_json(key) for key in (device, issuer))
        text = token.decode()

        def open_token():
            outer = jwe.JWE()
            outer.deserialize(text, device)
            inner = jws.JWS()
            inner.deserialize(outer.payload.decode(), issuer)
            return json.loads(inner.payload)["imh"] == integrity

        return open_token
    raise SystemExit("error there is no such library")


def pycose(token, folder):
    import cbor2
    from pycose.keys import EC2Key
    from pycose.keys.curves import P256
    from pycose.keys.keyops import DeriveKeyOp, VerifyOp
    from pycose.messages import CoseMessage

    point, signer = (folder / "device.point").read_bytes(), (folder / "issuer.point").read_bytes()
    device = EC2Key(P256, point[1:33], point[33:], (folder / "scalar").read_bytes(), {"KEY_OPS": [DeriveKeyOp]})
    issuer = EC2Key(P256, signer[1:33], signer[33:], optional_params={"KEY_OPS": [VerifyOp]})
    expected = (folder / "claims").read_bytes()

    def open_token():
        outer = CoseMessage.decode(token)
        recipient = outer.recipients[0]
        recipient.key = device
        inner = CoseMessage.decode(outer.decrypt(recipient))
        inner.key = issuer
        return inner.verify_signature() and inner.payload == expected and cbor2.loads(inner.payload)[-75001][0] == 0x11

    return open_token


def serve(work):
    if not work():
        raise SystemExit("error a result is wrong")
    for line in sys.stdin:
        count = int(line)
        start, used = time.perf_counter_ns(), time.process_time_ns()
        wrong = sum(not work() for _ in range(count))
        print(time.perf_counter_ns() - start, time.process_time_ns() - used, flush=True)
        if wrong:
            raise SystemExit("error results are wrong")


if __name__ == "__main__":
    serve(make(sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])))
