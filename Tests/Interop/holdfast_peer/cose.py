"""The measurement token as COSE (RFC 9052, RFC 9053): COSE_Sign1 or COSE_Mac0 inside COSE_Encrypt.

The layers take overrides, by which the vectors break one rule at a time; without any they write what the specification says.
"""

import hmac

from . import cbor
from . import claims as claim_rules
from .keys import key_id, mac_key_id, verify
from .primitives import gcm_open, gcm_seal, hkdf_sha256, hmac_sha256
from .refusal import require

MAC0, SIGN1, ENCRYPT = 17, 18, 96
CONTENT_PROTECTED = cbor.encode({1: 3})
LARGEST_TOKEN = 3072


def sign_protected(kid):
    return cbor.encode({1: -7, 4: kid, 16: "holdfast-mt"})


def signature_input(protected, payload):
    """Sig_structure of RFC 9052 section 4.4."""
    return cbor.encode(["Signature1", protected, b"", payload])


def mac_protected(kid):
    return cbor.encode({1: 5, 4: kid, 16: "holdfast-mt"})


def mac_input(protected, payload, context="MAC0"):
    """MAC_structure of RFC 9052 section 6.3."""
    return cbor.encode([context, protected, b"", payload])


def encryption_aad(protected):
    """Enc_structure of RFC 9052 section 5.3."""
    return cbor.encode(["Encrypt", protected, b""])


def recipient_protected(kid):
    return cbor.encode({1: -25, 4: kid})


def kdf_context(protected, algorithm=3):
    """COSE_KDF_Context of RFC 9053 section 5.2 with null parties."""
    nobody = [None, None, None]
    return cbor.encode([algorithm, nobody, nobody, [256, protected]])


def content_key(secret, protected, algorithm=3):
    return hkdf_sha256(secret, b"", kdf_context(protected, algorithm), 32)


def sign(payload, issuer, *, protected=None, unprotected=None, signature=None, tag=SIGN1):
    """COSE_Sign1 of `payload`. `unprotected` is encoded; `tag` None leaves the tag out."""
    protected = sign_protected(issuer.kid) if protected is None else protected
    signature = issuer.sign(signature_input(protected, payload)) if signature is None else signature
    body = [protected, cbor.Encoded(b"\xa0" if unprotected is None else unprotected), payload, signature]
    return cbor.encode(body if tag is None else cbor.Tag(tag, body))


def read_signed(data, typ):
    """The payload of a COSE_Sign1 with ES256 and this typ, the id of its key, and what the key signed and how. Nothing of that is checked."""
    item = _tagged(data, SIGN1)
    protected, unprotected, payload, signature = _array(item.value, 4)
    require(isinstance(protected, bytes), "WrongType")
    labels = cbor.decode(protected)
    require(isinstance(labels, dict) and labels.keys() == {1, 4, 16}, "HeaderLabels")
    require(labels[1] == -7 and not isinstance(labels[1], bool), "WrongAlgorithm")
    require(isinstance(labels[4], bytes), "WrongType")
    require(len(labels[4]) == 8, "WrongSize")
    require(labels[16] == typ, "WrongTyp")
    require(unprotected == {}, "HeaderLabels")
    require(isinstance(payload, bytes) and isinstance(signature, bytes), "WrongType")
    require(len(signature) == 64, "WrongSize")
    return payload, labels[4], signature_input(protected, payload), signature


def authenticate(payload, key, *, protected=None, unprotected=b"\xa0", code=None, tag=MAC0):
    """COSE_Mac0 of `payload` under 32 bytes that the issuer shares with the device. `unprotected` is encoded."""
    protected = mac_protected(mac_key_id(key)) if protected is None else protected
    code = hmac_sha256(key, mac_input(protected, payload)) if code is None else code
    return cbor.encode(cbor.Tag(tag, [protected, cbor.Encoded(unprotected), payload, code]))


def ephemeral_header(point):
    return cbor.encode({-1: {1: 2, -1: 1, -2: point[1:33], -3: point[33:]}})


def encrypt(
    plaintext,
    device_point,
    ephemeral,
    iv,
    *,
    protected=CONTENT_PROTECTED,
    unprotected=None,
    recipient=None,
    recipient_unprotected=None,
    recipient_ciphertext=b"",
    more_recipients=(),
    algorithm=3,
    context=None,
    tag=ENCRYPT,
):
    """COSE_Encrypt of `plaintext` to the holder of `device_point`. Overrides of headers are encoded bytes."""
    recipient = recipient_protected(key_id(device_point)) if recipient is None else recipient
    header = ephemeral_header(ephemeral.point) if recipient_unprotected is None else recipient_unprotected
    context = kdf_context(recipient, algorithm) if context is None else context
    key = hkdf_sha256(ephemeral.exchange(device_point), b"", context, 32)
    # An IV of another length than 12 bytes is for the vectors only.
    sealed = gcm_seal(key, iv, plaintext, encryption_aad(protected))
    first = [recipient, cbor.Encoded(header), recipient_ciphertext]
    unprotected = cbor.encode({5: iv}) if unprotected is None else unprotected
    body = [protected, cbor.Encoded(unprotected), sealed, [first, *more_recipients]]
    return cbor.encode(body if tag is None else cbor.Tag(tag, body))


def seal(claims, issuer, device_point, ephemeral, iv):
    """A measurement token: `claims` signed by `issuer`, encrypted to the device."""
    return encrypt(sign(claim_rules.to_cbor(claims), issuer), device_point, ephemeral, iv)


def _array(value, count):
    require(isinstance(value, list), "WrongType")
    require(len(value) == count, "WrongCount")
    return value


def _header(value, kinds):
    """A header map that holds exactly the labels of `kinds`, with values of those types."""
    require(isinstance(value, dict), "WrongType")
    require(value.keys() == kinds.keys(), "HeaderLabels")
    for label, kind in kinds.items():
        require(isinstance(value[label], kind) and not isinstance(value[label], bool), "WrongType")
    return value


def _protected(value, kinds):
    require(isinstance(value, bytes), "WrongType")
    return _header(cbor.decode(value), kinds)


def _tagged(data, *tags):
    item = cbor.decode(data, tags=tags)
    require(isinstance(item, cbor.Tag), "UnknownTag")
    return item


def open_token(token, device, issuers, device_id, accept_unsigned=False, *, mac_keys=(), accept_mac=False):
    """The claims of a valid token and the point of its verifying key (the id of a MAC key, None: unsigned), or a refusal.

    `device` is the device's PrivateKey, `issuers` the trusted uncompressed points, `mac_keys` what issuers share with the
    device. Time is not looked at.
    """
    require(len(token) <= LARGEST_TOKEN, "TooLarge")
    plaintext = decrypt(token, device)
    if accept_unsigned and plaintext[:1] and plaintext[0] >> 5 == cbor.MAP:
        claims, signer = claim_rules.from_cbor(plaintext), None
    else:
        require(not plaintext[:1] or plaintext[0] >> 5 != cbor.MAP, "Unsigned")
        payload, signer = _verified_payload(plaintext, issuers, mac_keys, accept_mac)
        claims = claim_rules.from_cbor(payload)
    require(claims["audience"] == device_id, "WrongAudience")
    return claims, signer


def decrypt(token, device):
    """The plaintext of a COSE_Encrypt to the device, or a refusal."""
    protected, unprotected, ciphertext, recipients = _array(_tagged(token, ENCRYPT).value, 4)
    require(_protected(protected, {1: int})[1] == 3, "WrongAlgorithm")
    iv = _header(unprotected, {5: bytes})[5]
    require(len(iv) == 12, "WrongSize")
    require(isinstance(ciphertext, bytes), "WrongType")
    require(isinstance(recipients, list), "WrongType")
    require(len(recipients) == 1, "RecipientCount")
    recipient, header, wrapped = _array(recipients[0], 3)
    labels = _protected(recipient, {1: int, 4: bytes})
    require(labels[1] == -25, "WrongAlgorithm")
    require(labels[4] == device.kid, "WrongKeyId")
    require(isinstance(wrapped, bytes), "WrongType")
    require(wrapped == b"", "RecipientCiphertext")
    key = _header(_header(header, {-1: dict})[-1], {1: int, -1: int, -2: bytes, -3: bytes})
    require(key[1] == 2 and key[-1] == 1, "WrongCurve")
    require(len(key[-2]) == 32 and len(key[-3]) == 32, "CoordinateSize")
    secret = device.exchange(b"\x04" + key[-2] + key[-3])
    return gcm_open(content_key(secret, recipient), iv, ciphertext, encryption_aad(protected))


def _verified_payload(plaintext, issuers, mac_keys, accept_mac):
    item = _tagged(plaintext, SIGN1, MAC0)
    protected, unprotected, payload, code = _array(item.value, 4)
    labels = _protected(protected, {1: int, 4: bytes, 16: str})
    require(labels[1] == (-7 if item.number == SIGN1 else 5), "WrongAlgorithm")
    require(labels[16] == "holdfast-mt", "WrongTyp")
    _header(unprotected, {})
    require(isinstance(payload, bytes) and isinstance(code, bytes), "WrongType")
    keys = {
        **{key_id(point): (SIGN1, point) for point in issuers},
        **{mac_key_id(key): (MAC0, key) for key in mac_keys},
    }
    require(labels[4] in keys, "WrongKeyId")
    kind, key = keys[labels[4]]
    require(item.number == kind, "WrongKeyKind")
    if kind == SIGN1:
        verify(key, signature_input(protected, payload), code)
        return payload, key
    require(accept_mac, "MacNotAccepted")
    require(len(code) == 32, "MacSize")
    require(hmac.compare_digest(code, hmac_sha256(key, mac_input(protected, payload))), "Mac")
    return payload, labels[4]
