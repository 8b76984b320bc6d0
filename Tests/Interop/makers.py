"""Makers, who sign files with openssl."""

import base64
import subprocess


def signature_by(key, file):
    """A maker's key as a policy has it, and its signature of a file, by openssl."""
    if not key.exists():
        made = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key]
        subprocess.run(made, check=True, capture_output=True)
    signature = file.with_suffix(f".{key.name}.sig")
    subprocess.run(["openssl", "dgst", "-sha256", "-sign", key, "-out", signature, file], check=True)
    der = subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-outform", "DER"], check=True, capture_output=True)
    return base64.b64encode(der.stdout).decode(), signature
