"""The device with BearSSL's curve in place of Holdfast's: the image of `make -C firmware-sim CURVE=bearssl`, and rounds on it.

`--measure` prints what it takes, for docs/performance.md.
"""

import images
import pytest
import script
from holdfast_peer import session


@pytest.fixture(scope="module")
def other_images():
    """The images of the other suites, as they were before."""
    return {path: path.read_bytes() for path in (images.FOLDER / ".build").glob("*.elf")}


@pytest.fixture(scope="module")
def image(other_images):
    images.build_with_bearssls_curve()
    return images.BEARSSL_FIRMWARE


@pytest.fixture(scope="module")
def figures(request, image, holdfast, folder):
    """What its rounds took, each of which has to be accepted, and its sizes."""
    provisioned = script.Provisioned(holdfast, folder)
    with provisioned.device("device", firmware=image) as device:
        grant = provisioned.signed(session.COSE)
        took = {
            "first token, COSE_Sign1": script.ask(device, grant),
            "a round with a remembered token": script.remembered(device, grant),
            "first token, COSE_Mac0": script.ask(device, provisioned.authenticated()),
        }
        stack = max(stack for _, _, stack in device.answers())
    figures = {**images.sizes(image), images.STACK: stack, **took}
    if request.config.getoption("measure"):
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print(*(f"{name:40}{figure:>12,}" for name, figure in figures.items()), sep="\n")
    return figures


@pytest.mark.parametrize("name, most", images.LIMITS.items())
def test_the_device_with_bearssls_curve_keeps_the_limits_of_size(figures, name, most):
    assert figures[name] <= most


def test_a_first_round_takes_bearssls_arithmetic_and_a_remembered_one_no_curve(figures):
    """BearSSL's curve takes six times the instructions for a first token, so that the image surely has it."""
    assert 16_000_000 < figures["first token, COSE_Sign1"] < 20_000_000
    assert 5_500_000 < figures["first token, COSE_Mac0"] < 7_500_000
    assert figures["a round with a remembered token"] < 150_000


def test_the_other_images_are_untouched(figures, other_images):
    assert other_images and all(path.read_bytes() == image for path, image in other_images.items())
