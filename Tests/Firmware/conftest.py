"""What the suites of the firmware share: a board that answers questions, and an owner who provisions devices."""

import tempfile

import pytest
from board import CURVES, Board
from provisioned import Owner
from traces import Plugins


@pytest.fixture(scope="session", autouse=True)
def images_are_built(board_images):
    """Nothing here runs without them."""


@pytest.fixture(scope="session")
def board(images_are_built):
    """A board that runs the test image."""
    with tempfile.TemporaryDirectory(prefix="hf") as folder, Board(folder) as board:
        yield board


@pytest.fixture(scope="session", params=CURVES)
def curve_board(request, images_are_built):
    """A board that runs the test image, with each of the two curves in turn."""
    with tempfile.TemporaryDirectory(prefix="hf") as folder, Board(folder, firmware=CURVES[request.param]) as board:
        yield board


@pytest.fixture(scope="module")
def owner(images_are_built, holdfast, folder):
    """Provisions devices, and is their issuer."""
    return Owner(holdfast, folder)


@pytest.fixture(scope="module")
def plugins(folder):
    """The plugins that follow a function."""
    return Plugins(folder)
