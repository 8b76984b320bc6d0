"""Values that others published, of each operation of a board."""

from board import HMAC_SHA1, HMAC_SHA256, HMAC_SHA512, SHA1, SHA256, SHA512

unhex = bytes.fromhex
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551

# FIPS 180-4 examples: "abc", nothing, 448 bits, 896 bits.
ABC = b"abc"
TWO_BLOCKS = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"
TWO_LONG_BLOCKS = (
    b"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"
)
HASHES = [
    (SHA1, ABC, "a9993e364706816aba3e25717850c26c9cd0d89d"),
    (SHA1, b"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
    (SHA1, TWO_BLOCKS, "84983e441c3bd26ebaae4aa1f95129e5e54670f1"),
    (SHA256, ABC, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (SHA256, b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    (SHA256, TWO_BLOCKS, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
    (
        SHA512,
        ABC,
        (
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        ),
    ),
    (
        SHA512,
        b"",
        (
            "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"
            "47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
        ),
    ),
    (
        SHA512,
        TWO_LONG_BLOCKS,
        (
            "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018"
            "501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909"
        ),
    ),
]

# RFC 2202 §3 (SHA-1) and RFC 4231 §4 (SHA-256, SHA-512): key, data, results.
JEFE = (b"Jefe", b"what do ya want for nothing?")
LONG_KEY_1 = (b"\xaa" * 80, b"Test Using Larger Than Block-Size Key - Hash Key First")
LONG_KEY_2 = (b"\xaa" * 131, b"Test Using Larger Than Block-Size Key - Hash Key First")
MACS = [
    (HMAC_SHA1, b"\x0b" * 20, b"Hi There", "b617318655057264e28bc0b6fb378c8ef146be00"),
    (HMAC_SHA1, *JEFE, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
    (HMAC_SHA1, *LONG_KEY_1, "aa4ae5e15272d00e95705637ce8a3b55ed402112"),
    (HMAC_SHA256, b"\x0b" * 20, b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
    (HMAC_SHA256, *JEFE, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    (HMAC_SHA256, *LONG_KEY_2, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
    (
        HMAC_SHA512,
        b"\x0b" * 20,
        b"Hi There",
        (
            "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde"
            "daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854"
        ),
    ),
    (
        HMAC_SHA512,
        *JEFE,
        (
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
            "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
        ),
    ),
    (
        HMAC_SHA512,
        *LONG_KEY_2,
        (
            "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f352"
            "6b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598"
        ),
    ),
]

# RFC 5869 Appendix A.1 to A.3: input key, salt, info, output.
HKDFS = [
    (
        b"\x0b" * 22,
        bytes(range(13)),
        bytes(range(0xF0, 0xFA)),
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    ),
    (
        bytes(range(80)),
        bytes(range(0x60, 0xB0)),
        bytes(range(0xB0, 0x100)),
        (
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
            "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"
        ),
    ),
    (b"\x0b" * 22, b"", b"", "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"),
]

# The GCM specification's test cases 13 to 16: key, nonce, data, message, ciphertext, tag.
KEY_15 = "feffe9928665731c6d6a8f9467308308" * 2
MESSAGE_15 = (
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525"
    "b16aedf5aa0de657ba637b391aafd255"
)
CIPHERTEXT_15 = (
    "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838"
    "c5f61e6393ba7a0abcc9f662898015ad"
)
GCMS = [
    ("00" * 32, "00" * 12, "", "", "", "530f8afbc74536b9a963b4f1c4cb738b"),
    ("00" * 32, "00" * 12, "", "00" * 16, "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919"),
    (KEY_15, "cafebabefacedbaddecaf888", "", MESSAGE_15, CIPHERTEXT_15, "b094dac5d93471bdec1a502270e3cc6c"),
    (
        KEY_15,
        "cafebabefacedbaddecaf888",
        "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        MESSAGE_15[:120],
        CIPHERTEXT_15[:120],
        "76fc6ece0f4e1768cddf8853bb2d551b",
    ),
]

# RFC 3394 §4.6.
WRAPPING_KEY = bytes(range(32))
WRAPPED = unhex("28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21")
UNWRAPPED = unhex("00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F")

# RFC 5903 §8.1: ECDH; RFC 6979 §A.2.5: ECDSA with SHA-256 over "sample".
SCALAR_I = unhex("C88F01F510D9AC3F70A292DAA2316DE544E9AAB8AFE84049C62A9C57862D1433")
POINT_I = unhex(
    "04DAD0B65394221CF9B051E1FECA5787D098DFE637FC90B9EF945D0C37725811805271A0461CDB8252D61F1C456FA3E59AB1F45B33ACCF5F5838"
    "9E0577B8990BB3"
)
SCALAR_R = unhex("C6EF9C5D78AE012A011164ACB397CE2088685D8F06BF9BE0B283AB46476BEE53")
POINT_R = unhex(
    "04D12DFB5289C8D4F81208B70270398C342296970A0BCCB74C736FC7554494BF6356FBF3CA366CC23E8157854C13C58D6AAC23F046ADA30F8353"
    "E74F33039872AB"
)
SHARED = unhex("D6840F6B42F6EDAFD13116E0E12565202FEF8E9ECE7DCE03812464D04B9442DE")
SIGNER = unhex(
    "0460FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB67903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177"
    "A3C294D4462299"
)
SAMPLE = unhex("AF2BDBE1AA9B6EC1E2ADE1D694F41FC71A831D0268E9891562113D8A62ADD1BF")
SIGNATURE = unhex(
    "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4"
    "AB2F843ACDA8"
)
