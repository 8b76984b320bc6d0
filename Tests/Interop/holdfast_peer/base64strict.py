"""Base64 as RFC 4648 defines it, canonical forms only: no line breaks, no non-zero trailing bits."""

import base64
import re

from .refusal import require


def url_encode(data):
    """Base64url without padding (section 5)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def url_decode(text):
    """The bytes of canonical, unpadded base64url `text`."""
    require(re.fullmatch(r"[A-Za-z0-9_-]*", text), "Base64")
    require(len(text) % 4 != 1, "Base64")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    require(url_encode(data) == text, "Base64")
    return data


def encode(data):
    """Standard padded base64 (section 4)."""
    return base64.b64encode(data).decode()


def decode(text):
    """The bytes of canonical, padded base64 `text`."""
    require(re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", text) and len(text) % 4 == 0, "Base64")
    data = base64.b64decode(text)
    require(encode(data) == text, "Base64")
    return data
