"""The device's curve on the host: the same C, compared with BearSSL's and OpenSSL's at edges and in random cases.

`make curve` compares ten million random cases.
"""

import subprocess

import images

COMPARE = ".build/curve/compare"


def test_the_curve_is_bearssls_and_openssls():
    images.build(COMPARE)
    compared = subprocess.run([images.FOLDER / COMPARE, "20000", "1"], capture_output=True, text=True)
    assert compared.returncode == 0, compared.stderr
    assert "20000 random cases" in compared.stdout, compared.stdout
