"""A lock that takes bulletins, an issuer that writes them, and a prover that delivers them."""

import pytest
from couriers import Courier, Press, VisitedDevice
from devices import served


@pytest.fixture
def lock(holdfast, tmp_path):
    with served(VisitedDevice(holdfast, tmp_path)) as device:
        yield device


@pytest.fixture
def press(lock):
    return Press(lock)


@pytest.fixture
def courier(lock):
    courier = Courier(lock)
    yield courier
    courier.close()
