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
        # Schemathesis takes every answer that it does not know for JSON; test_service_apps.py verifies this JWS.
        words += ["--exclude-operation-id", "configuration"]
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
        operations = DOCUMENT.read_text().count("operationId:") - 1
        assert f"Tested: {operations}" in text, text[-2000:]
        assert instance.process.poll() is None
        assert "failure" not in instance.log.read_text()
    finally:
        instance.stop()
