"""The independent device with a reader of JOSE in steps, of which a device that is unsound on purpose changes one."""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap
from holdfast_peer import base64strict, jose, keys, session, strict_json
from holdfast_peer import claims as claim_rules
from holdfast_peer.primitives import gcm_open
from holdfast_peer.refusal import Refused, require
from unsound_devices import SoundDevice


class ReaderOfJOSE(SoundDevice):
    """The independent device with a reader of JOSE in steps, each of which is sound."""

    def open(self, fields):
        if fields["encoding"] != session.JOSE:
            return super().open(fields)
        try:
            payload, signer = self.verified(self.content(fields["token"]))
            claims = claim_rules.from_json(self.strictly(payload))
        except (ValueError, KeyError, InvalidTag):
            raise Refused("JOSE") from None
        self.check_audience(claims)
        return claims, signer

    def content(self, token):
        """The plaintext of the JWE."""
        parts = token.decode().split(".")
        require(len(parts) == 5, "PartCount")
        header = self.header(parts[0], jose.ENCRYPTED_MEMBERS, jose.OPTIONAL_MEMBERS)
        require(header["cty"] == "JWT" and self.bytes_of(header["kid"]) == self.key.kid, "Header")
        wrapped, iv, ciphertext, tag = map(self.bytes_of, parts[1:])
        shared = self.agreement(header["epk"])
        key = self.content_key(shared, header, wrapped)
        return self.decompressed(header, self.decrypted(key, iv, ciphertext, tag, parts[0].encode()))

    def header(self, part, required, optional):
        members = strict_json.parse_object(self.strictly(self.bytes_of(part)))
        require(not self.refused_members(members.keys() - required - optional), "HeaderMember")
        require(not required - members.keys(), "MissingMember")
        return members

    def refused_members(self, unknown):
        return unknown

    def bytes_of(self, text):
        return base64strict.url_decode(text)

    def strictly(self, text):
        """The object in JSON, as the strict reader takes it."""
        return text

    def agreement(self, ephemeral):
        return self.key.exchange(keys.point_of_jwk(ephemeral))

    def content_key(self, shared, header, wrapped):
        require(header["enc"] == "A256GCM" and header["alg"] in (jose.DIRECT, jose.WRAPPED), "WrongAlgorithm")
        party = [self.bytes_of(header.get(name, "")) for name in ("apu", "apv")]
        key = jose.agreed_key(shared, header["alg"], *party)
        require(len(wrapped) == (0 if header["alg"] == jose.DIRECT else 40), "EncryptedKey")
        return aes_key_unwrap(key, wrapped) if wrapped else key

    def decrypted(self, key, iv, ciphertext, tag, data):
        require(len(tag) == 16, "WrongSize")
        return gcm_open(key, iv, ciphertext + tag, data)

    def decompressed(self, header, content):
        return content

    def verified(self, content):
        """The claims in the JWS, and the point of the key that signed them."""
        parts = content.decode().split(".")
        require(len(parts) == 3, "PartCount")
        header = self.header(parts[0], jose.SIGNED_MEMBERS, set())
        self.check_type(header)
        signer = next((point for point in self.issuers if keys.key_id(point) == self.bytes_of(header["kid"])), None)
        signer = self.signer(header, signer)
        require(signer is not None, "WrongKeyId")
        signed = f"{parts[0]}.{parts[1]}".encode()
        self.check(header["alg"], signer, signed, self.bytes_of(parts[2]))
        return self.bytes_of(parts[1]), signer

    def check_type(self, header):
        require(header["typ"] == "holdfast-mt+jwt", "WrongTyp")

    def signer(self, header, trusted):
        return trusted

    def check(self, algorithm, signer, signed, signature):
        require(algorithm == "ES256", "WrongAlgorithm")
        keys.verify(signer, signed, signature)

    def check_audience(self, claims):
        require(claims["audience"] == self.device_id, "WrongAudience")
