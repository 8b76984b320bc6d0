"""Values that RFCs print, for the pieces that the worked example does not reach."""

from holdfast_peer import jose, oath
from holdfast_peer.base64strict import url_encode
from holdfast_peer.keys import PrivateKey
from holdfast_peer.primitives import concat_kdf_sha256, hkdf_sha256


class TestPublishedValues:
    def test_deterministic_signature(self):
        """RFC 6979 A.2.5, P-256 with SHA-256, message "sample"."""
        key = PrivateKey(bytes.fromhex("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721"))
        assert key.sign(b"sample").hex() == (
            "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
            "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"
        )

    def test_concat_kdf_with_parties(self):
        """RFC 7518 appendix C. It derives 128 bits for A128GCM, so that name and length are exchanged here."""
        secret = bytes(
            [
                158,
                86,
                217,
                29,
                129,
                113,
                53,
                211,
                114,
                131,
                66,
                131,
                191,
                132,
                38,
                156,
                251,
                49,
                110,
                163,
                218,
                128,
                106,
                72,
                246,
                218,
                167,
                121,
                140,
                254,
                144,
                196,
            ]
        )
        info = jose.other_info(jose.DIRECT, b"Alice", b"Bob").replace(b"A256GCM", b"A128GCM")[:-4] + (128).to_bytes(
            4, "big"
        )
        assert url_encode(concat_kdf_sha256(secret, info)[:16]) == "VqqN6vgjbSBcIijNcacQGg"

    def test_hkdf(self):
        """RFC 5869 A.1."""
        made = hkdf_sha256(b"\x0b" * 22, bytes(range(13)), bytes(range(0xF0, 0xFA)), 42)
        assert made.hex() == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"

    def test_one_time_passwords(self):
        """RFC 4226 appendix D, RFC 6238 appendix B, RFC 6287 appendix C: some of each; the Swift tests have them all."""
        digits = b"1234567890" * 7
        assert [oath.hotp(digits[:20], counter) for counter in range(5)] == [
            "755224",
            "287082",
            "359152",
            "969429",
            "338314",
        ]
        assert [oath.totp(digits[:size], 20000000000, 8, name) for name, size in oath.HASHES.items()] == [
            "65353130",
            "77737706",
            "47863826",
        ]
        for suite, question, inputs, answer in (
            ("OCRA-1:HOTP-SHA1-6:QN08", "99999999", {}, "294470"),
            ("OCRA-1:HOTP-SHA256-8:C-QN08-PSHA1", "12345678", {"counter": 9, "pin": b"1234"}, "08522129"),
            ("OCRA-1:HOTP-SHA512-8:QN08-T1M", "44444444", {"time": 0x132D0B6}, "36209546"),
            ("OCRA-1:HOTP-SHA512-8:QA08-PSHA1", "SRV11114CLI22224", {"pin": b"1234"}, "32528969"),
            ("OCRA-1:HOTP-SHA512-8:QA10-T1M", "SIG1400000", {"time": 0x132D0B6}, "65360607"),
        ):
            key = digits[: oath.HASHES[oath.parse_suite(suite)["hash"]]]
            assert oath.ocra(suite, key, question, **inputs) == answer
