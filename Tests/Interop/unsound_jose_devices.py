"""Devices that are unsound only when they read a token in JOSE, each in one way, for the adversary to find."""

import base64
import contextlib
import json
import zlib

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap
from holdfast_peer import base64strict, cose, jose, keys, session
from holdfast_peer import claims as claim_rules
from holdfast_peer.primitives import concat_kdf_sha256, hmac_sha256
from holdfast_peer.refusal import require
from reader_of_jose import ReaderOfJOSE
from unsound_devices import SoundDevice


class WithoutJOSE(SoundDevice):
    """A device that is made without JOSE."""

    def open(self, fields):
        require(fields["encoding"] != session.JOSE, "JOSE")
        return super().open(fields)


class NoAlgorithm(ReaderOfJOSE):
    """A token that says that it needs no signature has none."""

    def check(self, algorithm, signer, signed, signature):
        if algorithm.lower() != "none":
            super().check(algorithm, signer, signed, signature)


class KeyOfEitherKind(ReaderOfJOSE):
    """The header says whether the issuer's key, which is kept as PEM, signs or authenticates."""

    def check(self, algorithm, signer, signed, signature):
        if algorithm != "HS256":
            return super().check(algorithm, signer, signed, signature)
        pem = keys.load_point(signer).public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        require(hmac_sha256(pem, signed) == signature, "Mac")


class KeyInHeader(ReaderOfJOSE):
    """The key in a header is the one that signed."""

    def refused_members(self, unknown):
        return unknown - {"jwk"}

    def signer(self, header, trusted):
        return keys.point_of_jwk(header["jwk"]) if "jwk" in header else trusted


class BareClaims(ReaderOfJOSE):
    """Claims without a signature are believed."""

    def verified(self, content):
        return (content, self.issuers[0]) if content[:1] == b"{" else super().verified(content)


class AnyAudienceInJOSE(ReaderOfJOSE):
    """A token for another device is taken."""

    def check_audience(self, claims):
        pass


class AnyAgeInJOSE(ReaderOfJOSE):
    """An expired token is taken."""

    def open(self, fields):
        opened = super().open(fields)
        if fields["encoding"] == session.JOSE:
            opened[0]["expires"] = 2**40
        return opened


class UsesOfEachEncoding(ReaderOfJOSE):
    """The uses of a token in JOSE are counted apart."""

    def decide(self, second, request):
        if second.fields["encoding"] == session.JOSE:
            second.claims = {**second.claims, "tokenId": second.claims["tokenId"][::-1]}
        return super().decide(second, request)


class AnyType(ReaderOfJOSE):
    """Whatever an issuer signed is a token."""

    def check_type(self, header):
        pass


class NothingCritical(ReaderOfJOSE):
    """A header parameter that is not known is ignored, though it says that it must not be."""

    def refused_members(self, unknown):
        return set()


class LastMember(ReaderOfJOSE):
    """Of members of one name, the last counts."""

    def strictly(self, text):
        return jose.dump(json.loads(text))


class PaddedParts(ReaderOfJOSE):
    """A part may have padding."""

    def bytes_of(self, text):
        return super().bytes_of(text.rstrip("="))


class SpareBits(ReaderOfJOSE):
    """The last bits of a part do not count."""

    def bytes_of(self, text):
        require("=" not in text and "\n" not in text, "Base64")
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class EveryKeyManagement(ReaderOfJOSE):
    """The header says how the content key is wrapped."""

    def content_key(self, shared, header, wrapped):
        bits = {"ECDH-ES+A128KW": 128, "ECDH-ES+A192KW": 192}.get(header["alg"])
        if bits is None:
            return super().content_key(shared, header, wrapped)
        name = header["alg"].encode()
        info = len(name).to_bytes(4, "big") + name + bytes(8) + bits.to_bytes(4, "big")
        return aes_key_unwrap(concat_kdf_sha256(shared, info)[: bits // 8], wrapped)


class EveryEncryption(ReaderOfJOSE):
    """The header says how the content is encrypted."""

    def content_key(self, shared, header, wrapped):
        if header["enc"] != "A128GCM":
            return super().content_key(shared, header, wrapped)
        info = (7).to_bytes(4, "big") + b"A128GCM" + bytes(8) + (128).to_bytes(4, "big")
        return concat_kdf_sha256(shared, info)[:16]


class ShortTags(ReaderOfJOSE):
    """As much of the authentication tag is compared as there is."""

    def decrypted(self, key, iv, ciphertext, tag, data):
        opener = Cipher(algorithms.AES(key), modes.GCM(iv, tag, min_tag_length=4)).decryptor()
        opener.authenticate_additional_data(data)
        return opener.update(ciphertext) + opener.finalize()


class Inflating(ReaderOfJOSE):
    """Contents may be compressed."""

    def refused_members(self, unknown):
        return unknown - {"zip"}

    def decompressed(self, header, content):
        return zlib.decompress(content, -15) if "zip" in header else content


class NamelessParties(ReaderOfJOSE):
    """The names of the parties do not count."""

    def content_key(self, shared, header, wrapped):
        return super().content_key(shared, {**header, "apu": "", "apv": ""}, wrapped)


class AnyPoint(ReaderOfJOSE):
    """Whether the ephemeral key is on the curve is not looked at."""

    def agreement(self, ephemeral):
        point = tuple(int.from_bytes(self.bytes_of(ephemeral[name]), "big") for name in "xy")
        shared, scalar = None, int.from_bytes(self.key.scalar, "big")
        for bit in bin(scalar)[2:]:
            shared = _sum(shared, shared)
            if bit == "1":
                shared = _sum(shared, point)
        require(shared is not None, "Point")
        return shared[0].to_bytes(32, "big")


def _sum(one, other):
    """The sum of two points of a curve whose constant b does not matter; None is the neutral one."""
    if one is None or other is None:
        return other if one is None else one
    prime = keys.PRIME
    if one[0] == other[0]:
        if (one[1] + other[1]) % prime == 0:
            return None
        slope = (3 * one[0] ** 2 - 3) * pow(2 * one[1], -1, prime) % prime
    else:
        slope = (other[1] - one[1]) * pow(other[0] - one[0], -1, prime) % prime
    x = (slope**2 - one[0] - other[0]) % prime
    return x, (slope * (one[0] - x) - one[1]) % prime


class SignaturesInDER(ReaderOfJOSE):
    """A signature may be in DER."""

    def check(self, algorithm, signer, signed, signature):
        if signature[:1] == b"\x30" and len(signature) != 64:
            r, s = decode_dss_signature(signature)
            signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
        super().check(algorithm, signer, signed, signature)


class AnyIssuer(ReaderOfJOSE):
    """Nobody looks who signed."""

    def signer(self, header, trusted):
        return trusted or self.issuers[0]

    def check(self, algorithm, signer, signed, signature):
        pass


class IssuerByName(ReaderOfJOSE):
    """The key id in the header says who signed."""

    def check(self, algorithm, signer, signed, signature):
        require(algorithm == "ES256", "WrongAlgorithm")


class AnyAlgorithm(ReaderOfJOSE):
    """The name of the algorithm does not count, since the key has only one."""

    def check(self, algorithm, signer, signed, signature):
        super().check("ES256", signer, signed, signature)


class SignedOnly(ReaderOfJOSE):
    """A token need not be encrypted."""

    def content(self, token):
        return token if token.count(b".") == 2 else super().content(token)


class ContentInCOSE(ReaderOfJOSE):
    """The first byte of the contents says what they are."""

    def open(self, fields):
        if fields["encoding"] == session.JOSE:
            with contextlib.suppress(ValueError, KeyError):
                content = self.content(fields["token"])
                if content[:1] == b"\xd2":
                    payload, signer = cose._verified_payload(content, self.issuers, (), False)
                    return claim_rules.from_cbor(payload), signer
        return super().open(fields)


class OptionalParameters(ReaderOfJOSE):
    """A header parameter may be missing."""

    def header(self, part, required, optional):
        defaults = {"alg": "ES256", "kid": base64strict.url_encode(keys.key_id(self.issuers[0]))}
        defaults |= {"typ": "holdfast-mt+jwt", "cty": "JWT"}
        members = super().header(part, set(), required | optional)
        return {**{name: value for name, value in defaults.items() if name in required}, **members}


class LooseNumbers(ReaderOfJOSE):
    """A number may have a fraction or an exponent."""

    def strictly(self, text):
        return jose.dump(json.loads(text, parse_float=lambda digits: int(float(digits))))


class FirstValue(ReaderOfJOSE):
    """What follows an object does not count."""

    def strictly(self, text):
        return jose.dump(json.JSONDecoder().raw_decode(text.decode())[0])


class UnknownClaims(ReaderOfJOSE):
    """Claims that are not known are ignored."""

    def strictly(self, text):
        return jose.dump({name: value for name, value in json.loads(text).items() if name != "unk"})


class AnyCurve(ReaderOfJOSE):
    """The name of the curve does not count."""

    def agreement(self, ephemeral):
        return super().agreement({**ephemeral, "kty": "EC", "crv": "P-256"})


class LineBreaks(ReaderOfJOSE):
    """A part may have line breaks."""

    def bytes_of(self, text):
        return super().bytes_of(text.replace("\n", ""))


# By device, the attack that must find it.
FLAWS_IN_JOSE = {
    NoAlgorithm: "no-algorithm",
    KeyOfEitherKind: "public-key-as-mac-jose",
    KeyInHeader: "key-in-header",
    BareClaims: "unsigned-token-jose",
    AnyAudienceInJOSE: "token-of-another-device-jose",
    AnyAgeInJOSE: "expired-token-jose",
    UsesOfEachEncoding: "uses-in-both-encodings",
    AnyType: "another-type-jose",
    NothingCritical: "critical-header",
    LastMember: "duplicate-member",
    PaddedParts: "padded-part",
    SpareBits: "trailing-bits",
    EveryKeyManagement: "another-key-management",
    EveryEncryption: "another-encryption",
    ShortTags: "truncated-tag",
    Inflating: "compressed-token",
    NamelessParties: "ignored-parties",
    AnyPoint: "point-off-the-curve-jose",
    SignaturesInDER: "another-signature-form",
    AnyIssuer: "foreign-issuer-jose",
    IssuerByName: "stolen-key-id-jose",
    AnyAlgorithm: "another-signature-algorithm",
    SignedOnly: "unencrypted-token-jose",
    ContentInCOSE: "content-of-other-encoding-jose",
    OptionalParameters: "missing-parameter",
    LooseNumbers: "another-type-of-claim",
    FirstValue: "bytes-after-json",
    UnknownClaims: "unknown-claim-jose",
    AnyCurve: "another-curve",
    LineBreaks: "another-alphabet",
}
