"""Three instances and a primary are killed at random while provers enrol and operators revoke; nothing is lost.

`make chaos-service` does the same for as long as it is told.
"""

import pathlib
import tempfile

import postgresql
import pytest
from chaos_service import Chaos

SECONDS, CLIENTS, SEED = 10, 16, 18


@pytest.fixture(scope="module")
def chaos(request):
    """A run that is over, with what should not have happened."""
    program = request.config.getoption("holdfast").resolve().parent / "holdfast-service"
    with tempfile.TemporaryDirectory(prefix="hf", dir="/tmp", ignore_cleanup_errors=True) as folder:
        # Another user runs the database.
        pathlib.Path(folder).chmod(0o711)
        try:
            chaos = Chaos(program, folder, SECONDS, SEED, CLIENTS)
        except postgresql.Absent as reason:
            pytest.skip(str(reason))
        found = chaos.run()
        chaos.report(found)
        yield chaos, found


def test_nothing_is_lost_and_nothing_is_given_after_its_revocation(chaos):
    _, found = chaos
    assert found == []


def test_servers_of_each_kind_were_killed_while_tokens_were_given_and_revoked(chaos):
    run, _ = chaos
    assert {"kill instance", "kill standby", "restart primary", "fail over"} <= run.kills.keys(), run.kills
    assert run.failovers >= 2 and len(run.journal.given) > 2 * CLIENTS, (run.failovers, len(run.journal.given))
    assert any(revoked.acknowledged for revoked in run.journal.revoked), "nothing was revoked"
