"""The HTTP interface of `holdfast-service`: `docs/openapi.yaml` describes it, and Schemathesis finds nothing that it does not."""

import os
import pathlib
import subprocess
import sys

import pytest
from holdfast_peer.command_line import CommandLine
from test_service import Instance, Service

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "openapi.yaml"

# The schemas do not say that base64 holds JSON, that a version needs an app and a manifest its signature, which names of
# findings there are, or that a minimum version or an order about a key is for a device or a group: these operations refuse some bodies that have the
# right form. All other checks apply to them.
NOT_ONLY_FORM = """
[[operations]]
include-operation-id = ["setSettings", "removeSettings", "setPostureRules", "setPolicy", "approveImage", "raiseMinimumVersion", "introduceKey", "endKey"]
checks.positive_data_acceptance.enabled = false
"""


@pytest.fixture(scope="module")
def service(request, tmp_path_factory):
    program = request.config.getoption("holdfast").resolve().parent / "holdfast-service"
    assert program.exists(), "make service builds it"
    folder = tmp_path_factory.mktemp("interface")
    return Service(program, CommandLine(request.config.getoption("holdfast").resolve(), folder), folder)


def test_the_document_is_what_the_service_checks(service):
    done = subprocess.run([service.program, "openapi"], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert done.stdout == DOCUMENT.read_bytes(), "holdfast-service openapi >docs/openapi.yaml"


def test_schemathesis_finds_no_difference(service, request, tmp_path):
    library = request.config.getoption("schemathesis")
    if library is None:
        pytest.skip("pip could not install Schemathesis")
    token = service.operator("schemathesis", "read,approve,revoke,admin")
    instance = Instance(service, certificate=None, key=None, log_level="warning", requests_per_minute=1_000_000)
    try:
        words = [sys.executable, library.resolve() / "bin" / "schemathesis", "run", DOCUMENT]
        words += ["--url", f"http://127.0.0.1:{instance.port}", "--header", f"Authorization: Bearer {token}"]
        words += ["--phases", "examples,coverage,fuzzing", "--max-examples", "20", "--continue-on-failure"]
        words += ["--seed", "1", "--request-timeout", "60", "--warnings", "off", "--suppress-health-check", "all"]
        # Schemathesis takes every answer that it does not know for JSON; test_service_apps.py verifies these two JWS.
        words += ["--exclude-operation-id", "configuration", "--exclude-operation-id", "postureRules"]
        (tmp_path / "schemathesis.toml").write_text(NOT_ONLY_FORM)
        environment = {**os.environ, "PYTHONPATH": str(library.resolve()), "HOME": str(tmp_path)}
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            cwd=tmp_path,
            timeout=900,
            check=False,
        )
        text = done.stdout.decode(errors="replace")
        assert done.returncode == 0, text[-6000:]
        # A run that tested nothing would pass, too.
        operations = DOCUMENT.read_text().count("operationId:") - 2
        assert f"Tested: {operations}" in text, text[-2000:]
        assert instance.process.poll() is None
        assert "failure" not in instance.log.read_text()
    finally:
        instance.stop()
