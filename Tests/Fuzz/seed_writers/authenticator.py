"""An authenticator's files, and secrets from others."""

import base64
import hashlib
import hmac

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.keywrap import aes_key_wrap
from holdfast_peer import cbor

from .shared import ZEROS, field, url


def add_authenticator(seeds):
    seeds.add(
        "otpauth",
        "otpauth://totp/Issuer:ann?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Issuer&algorithm=SHA256&digits=8&period=60",
    )
    seeds.add("otpauth", "otpauth://hotp/ann%20b?secret=GEZDGNBVGY3TQOJQ&counter=5\notpauth://totp/x?secret=MZXW6YTB\n")
    seeds.add("otpauth", "otpauth://ocra/ann?secret=GEZDGNBVGY3TQOJQ&ocrasuite=OCRA-1:HOTP-SHA256-8:QH64-T1M")

    totp = field(1, bytes(20)) + field(2, b"ann") + field(3, b"Issuer") + field(4, 1) + field(5, 1) + field(6, 2)
    hotp = field(1, bytes(20)) + field(2, b"Issuer:bob") + field(4, 2) + field(5, 2) + field(6, 1) + field(7, 300)
    for keys_, count, index in (([totp], 1, 0), ([totp, hotp], 1, 0)):
        payload = (
            b"".join(field(1, key) for key in keys_) + field(2, 1) + field(3, count) + field(4, index) + field(5, 1234)
        )
        data = base64.b64encode(payload).decode().replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")
        seeds.add("migration", f"otpauth-migration://offline?data={data}")
    parts = []
    for index, key in enumerate((totp, hotp)):
        payload = field(1, key) + field(2, 1) + field(3, 2) + field(4, index) + field(5, 99)
        parts.append(
            "otpauth-migration://offline?data="
            + base64.b64encode(payload).decode().replace("+", "%2B").replace("=", "%3D")
        )
    seeds.add("migration", "\n".join(parts), "\n".join(reversed(parts)), parts[0])
    seeds.add(
        "typed", "1234", "135790", "012345", "0123456789abcdef", "Correct horse", "0000-0000-0000-0000-0000-0000-0000"
    )
    body = bytes([15, 8, 1]) + bytes(28) + b"ciphertext" + bytes(16)
    check = hashlib.sha256(b"holdfast/1 state string\x00" + body).digest()[:4]
    seeds.add("state-string", "hfstate1" + url(body + check), "hfstate1\n" + url(body + check))
    header = bytes([1, 1, 1]) + bytes(28)
    key = hashlib.scrypt(b"correct horse", salt=bytes(16), n=2, r=1, p=1, dklen=32)
    for name, state in ((key, b"state"), (ZEROS, b"state")):
        body = header + AESGCM(name).encrypt(bytes(12), state, b"hfstate1" + header)
        check = hashlib.sha256(b"holdfast/1 state string\x00" + body).digest()[:4]
        seeds.add("state-string", "hfstate1" + url(body + check))
    protections = (
        [0],
        [1, bytes(16), 15, 8, 1],
        [2, bytes(16)],
        [4, bytes(16), bytes(8)],
        [7, bytes(16), 14, 8, 1, bytes(16), bytes(16), bytes(8)],
    )
    # The undo code is 16 zeros.
    undo_key = HKDF(hashes.SHA256(), 32, b"", b"holdfast/1 undo key\x00").derive(bytes(16))
    binding = b"holdfast/1 undo copy\x00" + cbor.encode("ann") + cbor.encode(1)
    undo = bytes(12) + AESGCM(undo_key).encrypt(bytes(12), cbor.encode([[2, bytes(16)], bytes(20)]), binding)
    for protection in protections:
        for method in ([1, 1, 6], [2, 1, 6, 30], [3, "OCRA-1:HOTP-SHA256-8:QH64-T1M"]):
            record = [
                "ann",
                1,
                1,
                "Issuer",
                bytes(16),
                method,
                1,
                0,
                -5,
                3,
                4,
                None,
                16,
                0,
                1,
                protection,
                bytes(20),
                0,
                None,
                None,
                None,
            ]
            seeds.add("state-records", cbor.encode(record), cbor.encode(record + [134]))
            for copy in (undo, undo[:-1] + b"x", bytes(20)):
                seeds.add("state-records", cbor.encode([*record[:18], copy, *record[19:]]))
            record[2] = 2
            seeds.add("state-records", cbor.encode(record))


def add_containers(seeds):
    """Containers of RFC 6030 under the keys that the target tries: 16, 24 and 32 zeros, and the passphrase `qwerty`."""
    namespaces = (
        'xmlns="urn:ietf:params:xml:ns:keyprov:pskc" xmlns:ds="http://www.w3.org/2000/09/xmldsig#" '
        'xmlns:xenc="http://www.w3.org/2001/04/xmlenc#" xmlns:xenc11="http://www.w3.org/2009/xmlenc11#" '
        'xmlns:pkcs5="http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#"'
    )
    encode = lambda data: base64.b64encode(data).decode()
    xenc = "http://www.w3.org/2001/04/xmlenc#"
    names = {"sha1": "http://www.w3.org/2000/09/xmldsig#hmac-sha1"}
    names |= {f"sha{bits}": f"http://www.w3.org/2001/04/xmldsig-more#hmac-sha{bits}" for bits in (256, 384, 512)}

    def container(protection, data, algorithm="hotp", parameters="", policy="", device="", add=seeds.add):
        add(
            "pskc",
            f'<?xml version="1.0"?><KeyContainer Version="1.0" {namespaces}>{protection}<KeyPackage><DeviceInfo>{device}'
            f'</DeviceInfo><Key Id="ann" Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:{algorithm}"><Issuer>I</Issuer>'
            f"<AlgorithmParameters>{parameters}</AlgorithmParameters><Data>{data}</Data>{policy}</Key></KeyPackage>"
            "</KeyContainer>",
        )

    def cipher(name, value):
        return (
            f'<xenc:EncryptionMethod Algorithm="{xenc}{name}"/><xenc:CipherData><xenc:CipherValue>{encode(value)}'
            "</xenc:CipherValue></xenc:CipherData>"
        )

    def cbc(key, message):
        count = 16 - len(message) % 16
        encryptor = Cipher(AES(key), CBC(bytes(16))).encryptor()
        return bytes(16) + encryptor.update(message + bytes([count]) * count) + encryptor.finalize()

    def encrypted(name, method, value, mac=None):
        code = "" if mac is None else f"<ValueMAC>{encode(mac)}</ValueMAC>"
        return f"<{name}><EncryptedValue>{cipher(method, value)}</EncryptedValue>{code}</{name}>"

    plain = "<Secret><PlainValue>MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=</PlainValue></Secret>"
    number = lambda name, value: f"<{name}><PlainValue>{value}</PlainValue></{name}>"
    response = '<ResponseFormat Length="8" Encoding="DECIMAL" CheckDigits="false"/>'
    container("", plain + number("Counter", 5), parameters=response)
    for suite in ("SHA1", "SHA256", "SHA512", "MD5"):
        parameters = f"<Suite>HMAC-{suite}</Suite>{response}"
        container("", plain + number("TimeInterval", 60) + number("Time", 0), "totp", parameters)
    container("", plain + number("Time", 9), "totp")
    container("", plain + number("Counter", "x"))
    container("", plain, "ocra", "<Suite>OCRA-1:HOTP-SHA256-8:QH64-T1M</Suite>" + response)
    container("", plain, "pin")
    container("", plain, parameters='<ResponseFormat Length="8" Encoding="ALPHANUMERIC"/>')
    container("", plain, parameters='<ResponseFormat Length="8" Encoding="DECIMAL" CheckDigits="true"/>')
    container(
        "", plain, policy="<Policy><KeyUsage>OTP</KeyUsage><NumberOfTransactions>3</NumberOfTransactions></Policy>"
    )
    container("", plain, policy="<UserId>u</UserId>", device="<DeviceBinding>x</DeviceBinding>")
    container("", plain, policy="<FriendlyName>f</FriendlyName><Policy><KeyUsage>Sign</KeyUsage></Policy>")

    named = "<EncryptionKey><ds:KeyName>k</ds:KeyName></EncryptionKey>"
    for count, name in ((16, "sha1"), (24, "sha256"), (32, "sha384"), (32, "sha512")):
        key, kind = bytes(count), f"aes{8 * count}-cbc"
        value, position = cbc(key, bytes(20)), cbc(key, b"\x01\x00")
        mac = lambda message, key=key, name=name: hmac.new(key, message, name).digest()
        method = f'<MACMethod Algorithm="{names[name]}"></MACMethod>'
        data = encrypted("Secret", kind, value, mac(value)) + encrypted("Counter", kind, position, mac(position))
        container(named + method, data)
        container(named + method, encrypted("Secret", kind, value, bytes(len(mac(value)))))
        container(named + method, encrypted("Secret", kind, value))
        container(named, encrypted("Secret", kind, value), add=seeds.add_at_limit)
        sealed = encrypted("Secret", kind, value, mac(value))
        both = plain.replace("</Secret>", sealed.removeprefix("<Secret>"))
        container(named + method, both, add=seeds.add_at_limit)
        container(named, encrypted("Secret", kind, value, mac(value)))
        container(named, encrypted("Secret", f"kw-aes{8 * count}", aes_key_wrap(key, bytes(24))))
    mac_key = bytes(range(20))
    value = cbc(bytes(16), bytes(20))
    method = f'<MACMethod Algorithm="{names["sha1"]}"><MACKey>{cipher("aes128-cbc", cbc(bytes(16), mac_key))}</MACKey></MACMethod>'
    container(named + method, encrypted("Secret", "aes128-cbc", value, hmac.new(mac_key, value, "sha1").digest()))
    container(named, encrypted("Secret", "tripledes-cbc", value))
    container("<EncryptionKey><ds:X509Data/></EncryptionKey>", plain)

    def derived(count, function, iterations=2, method="http://www.w3.org/2009/xmlenc11#pbkdf2"):
        return (
            f'<EncryptionKey><xenc11:DerivedKey><xenc11:KeyDerivationMethod Algorithm="{method}"><pkcs5:PBKDF2-params>'
            f"<Salt><Specified>{encode(bytes(8))}</Specified></Salt><IterationCount>{iterations}</IterationCount>"
            f"<KeyLength>{count}</KeyLength>{function}</pkcs5:PBKDF2-params></xenc11:KeyDerivationMethod>"
            "</xenc11:DerivedKey></EncryptionKey>"
        )

    for count, function, name in (
        (16, "<PRF/>", "sha1"),
        (32, f'<PRF Algorithm="{names["sha256"]}"/>', "sha256"),
    ):
        key = hashlib.pbkdf2_hmac(name, b"qwerty", bytes(8), 2, count)
        wrapped = encrypted("Secret", f"kw-aes{8 * count}", aes_key_wrap(key, bytes(24)))
        container(derived(count, function), wrapped)
        container(derived(count + 1, function), wrapped)
        container(derived(count, function, 99999999), wrapped)
        container(derived(count, function, method="other"), wrapped)
