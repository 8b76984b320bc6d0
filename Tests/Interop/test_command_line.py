"""The command line as a newcomer meets it: what it refuses, what it suggests, and its help."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

OK, DENIED, MALFORMED, USAGE, UNAVAILABLE = 0, 1, 2, 64, 69
PROJECT = pathlib.Path(__file__).resolve().parents[2]
SECRET = "JBSWY3DPEHPK3PXP"


class Newcomer:
    """Runs the program in a folder."""

    def __init__(self, holdfast, folder):
        self.holdfast, self.path = str(holdfast), folder

    def run(self, *arguments, status=OK, stdin=b""):
        """Runs a command in the temporary folder; how it ended."""
        done = subprocess.run(
            [self.holdfast, *arguments],
            input=stdin,
            capture_output=True,
            timeout=60,
            cwd=self.path,
            start_new_session=True,
        )
        said = done.stderr.decode().strip()
        assert done.returncode == status, f"{arguments} ({said})"
        return done

    def refuse(self, status, *arguments, stdin=b""):
        """What a command that must fail said: the message and its hint, without their labels."""
        lines = self.run(*arguments, status=status, stdin=stdin).stderr.decode().splitlines()
        message = [line.removeprefix("holdfast: ") for line in lines if line.startswith("holdfast: ")]
        hint = [line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")]
        return message[-1], hint[-1] if hint else ""

    def device(self, name="lock"):
        if not (self.path / name).exists():
            self.run("device", "init", "--dir", name)
        return name


@pytest.fixture(scope="module")
def newcomer(holdfast, folder):
    return Newcomer(holdfast, folder)


def test_a_secret_as_an_argument_is_refused_and_not_repeated(newcomer):
    """A code, a PIN or a key URI as an argument is refused with a hint, and not repeated."""
    code = newcomer.run("device", "user", "add", "--dir", newcomer.device(), "alice").stdout.decode().strip()
    activate = ("otp", "activate", "--connect", "unix:nowhere", "--authenticator", "keys", "--no-pin")
    prove = ("prove", "--connect", "unix:nowhere", "--state", "phone", "--command", "unlock", "--user", "alice")
    for status, secret, arguments in (
        (USAGE, code, (*activate, "--code", code)),
        (USAGE, code.lower(), (*activate, "--code", code.lower())),
        (USAGE, code.replace("-", ""), (*activate, "--code", code.replace("-", ""))),
        (USAGE, code, ("otp", "unlock", "--connect", "unix:nowhere", "--code", code)),
        # Mistyped: no file has that name either.
        (MALFORMED, code[:-1], (*activate, "--code", code[:-1])),
        (USAGE, "482913", (*prove, "--otp", "482913")),
        (USAGE, "482 913", (*prove, "--otp", "482 913")),
        (USAGE, "48291377", (*prove, "--seal", "48291377")),
        (MALFORMED, "48291x", (*prove, "--otp", "48291x")),
        (USAGE, SECRET, ("otp", "import", "--authenticator", "keys", "--no-pin", f"otpauth://totp/a?secret={SECRET}")),
        (USAGE, SECRET, ("otp", "import", "--authenticator", "keys", "--no-pin", f"OTPAUTH://totp/a?secret={SECRET}")),
        (
            USAGE,
            "data",
            ("otp", "import", "--authenticator", "keys", "--no-pin", "otpauth-migration://offline?data=AAAA"),
        ),
        (MALFORMED, SECRET, ("otp", "import", "--authenticator", "keys", "--no-pin", "--format", "base32", SECRET)),
        (MALFORMED, SECRET, ("device", "user", "add", "--dir", "lock", "--otp-secret", SECRET, "bob")),
    ):
        for options in ((), ("--json",)):
            done = newcomer.run(*arguments, *options, status=status)
            assert secret.encode() not in done.stderr + done.stdout, f"{arguments}: the secret is repeated"
            assert b"hint: " in done.stderr, f"{arguments}: no hint"
            assert b" - " in done.stderr or b"file" in done.stderr, (
                f"{arguments}: the hint does not say how it is given"
            )
    assert not (newcomer.path / "keys").exists(), "an authenticator was made"
    newcomer.run("otp", "unlock", "--connect", "unix:nowhere", "--code", "-", status=UNAVAILABLE, stdin=code.encode())
    (newcomer.path / "code").write_text(code + "\n")
    newcomer.run("otp", "unlock", "--connect", "unix:nowhere", "--code", "code", status=UNAVAILABLE)
    # The parser takes the owner's hint as it is printed.
    said = newcomer.run("device", "user", "unlock", "--dir", "lock", "nobody", status=DENIED)
    said = newcomer.run("device", "user", "add", "--dir", "lock", "carol")
    hint = re.search(rb"holdfast (otp activate .*)", said.stderr).group(1).decode()
    arguments = hint.replace("ENDPOINT", "unix:nowhere").split()
    newcomer.run(*arguments, "--no-pin", status=UNAVAILABLE, stdin=said.stdout)


def test_a_typing_error_is_named_and_what_was_meant_is_suggested(newcomer):
    """A typing error is named, and what was meant is suggested; --json holds for it, too."""
    for arguments, named, meant in (
        (("prov",), "'prov'", "holdfast prove"),
        (("device", "serv"), "'serv'", "holdfast device serve"),
        (("prove", "--conect", "x"), "'--conect'", "--connect"),
        (("version",), "'version'", "holdfast --version"),
        (("help", "prov"), "'prov'", "holdfast prove"),
        (("serve",), "'serve'", "holdfast device serve"),
    ):
        message, hint = newcomer.refuse(USAGE, *arguments)
        assert named in message and f"did you mean {meant}? see holdfast" in hint, f"{arguments}: {message} / {hint}"
        for words in ((*arguments, "--json"), ("--json", *arguments)):
            answer = json.loads(newcomer.run(*words, status=USAGE).stdout)
            assert answer == {"error": message, "hint": hint, "exit": USAGE, "code": "usage", "number": USAGE}, (
                f"{words}"
            )
    message, hint = newcomer.refuse(USAGE, "device", "audit", "--dir", "lock", "--last", "-1")
    assert "--last=-1" in hint, hint
    answer = json.loads(newcomer.run("prove", "--state", "p", "--json", status=USAGE).stdout)
    assert "--connect" in answer["error"] and answer["exit"] == USAGE, f"{answer}"
    assert newcomer.run("frobnicate", status=USAGE).stdout == b"", "the result without --json"
    shown = newcomer.run("device", "show", "--json", "--dir", newcomer.device()).stdout
    for words in (("--json", "device", "show"), ("device", "--json", "show")):
        assert newcomer.run(*words, "--dir", "lock").stdout == shown, f"{words}"


def test_a_wrong_endpoint_is_explained(newcomer):
    prove = ("prove", "--state", "p", "--command", "c", "--connect")
    (newcomer.path / "lock.sock").touch()
    for text, reason, wanted in (
        (
            str(newcomer.path / "lock.sock"),
            "the name of a transport",
            f"did you mean unix:{newcomer.path / 'lock.sock'}?",
        ),
        ("./lock.sock", "the name of a transport", "did you mean unix:./lock.sock?"),
        ("l2cap:00:1A:7D:DA:71:13,psm=0x1000", "out of range: the PSM is odd, from 0x1001", "holdfast help endpoints"),
        ("l2cap:00:1A:7D:DA:71:13,psm=0x1002", "even: the PSM is odd", "holdfast help endpoints"),
        ("l2cap:00:1A:7D:DA:71:13,psm=0x1101", "odd upper byte", "holdfast help endpoints"),
        ("le:00:1A:7D:DA:71:13", "the psm is missing: the PSM is 0x80 to 0xff", "holdfast help endpoints"),
        ("le:00:1A:7D:DA:71:13,psm=x", "not a number", "holdfast help endpoints"),
    ):
        message, hint = newcomer.refuse(USAGE, *prove, text)
        assert reason in message and wanted in hint, f"{text}: {message} / {hint}"
    page = newcomer.run("help", "endpoints").stdout.decode()
    for form in ("unix:PATH", "unix-stream:PATH", "tty:PATH", "l2cap:", "rfcomm:", "le:", "hci=hci0", "security="):
        assert form in page, f"help endpoints lacks {form}"


def test_an_argument_that_is_not_utf_8_is_refused_wherever_it_is(newcomer):
    """An argument that is not UTF-8 is refused, wherever it is."""
    for arguments in (
        ("device", "init", "--dir", b"q\xff"),
        ("device", "user", "add", "--dir", "lock", b"al\xffice"),
        (b"\xc3\x28",),
    ):
        for options in ((), ("--json",)):
            done = newcomer.run(*arguments, *options, status=USAGE)
            assert b"not UTF-8" in done.stderr and bool(done.stdout) == bool(options), f"{arguments}: {done}"
    assert not [name for name in os.listdir(os.fsencode(newcomer.path)) if name.startswith(b"q")], "a folder was made"


def test_the_version_is_told_in_words_and_as_json(newcomer):
    text = newcomer.run("--version").stdout.decode()
    answer = json.loads(newcomer.run("--version", "--json").stdout)
    assert text == f"holdfast {answer['version']}, protocol {answer['protocol']}\n", "--version"
    assert answer["protocol"] == 1, "the protocol"
    assert re.fullmatch(r"[A-Za-z0-9._+-]+", answer["version"]), f"{answer}"


def describe(package, place):
    """The version that a package's sources are built with."""
    out = place / "Version.swift"
    subprocess.run([PROJECT / "Plugins/VersionPlugin/describe", package, out], check=True, timeout=60)
    return re.fullmatch(r'let buildDescription = "(.*)"\n', out.read_text()).group(1), out.stat().st_mtime_ns


def test_the_program_stays_small_because_each_proof_hashes_it(holdfast):
    program = holdfast.read_bytes()
    assert len(program) <= 15_000_000
    # One call of an innocent function such as `trimmingPrefix` links these.
    for library in (b"_StringProcessing", b"_RegexParser"):
        assert library not in program


def test_the_version_comes_from_git_from_an_archive_or_is_unknown(newcomer):
    """The version comes from git in a clone, from VERSION in an archive of it, and is unknown elsewhere."""
    clone, git = newcomer.path / "clone", ("git", "-c", "user.name=n", "-c", "user.email=e", "-C")
    clone.mkdir()
    assert describe(clone, newcomer.path)[0] == "unknown", "without git"
    shutil.copy(PROJECT / "VERSION", clone)
    shutil.copy(PROJECT / ".gitattributes", clone)
    assert describe(clone, newcomer.path)[0] == "unknown", (
        "in a copy without git, whose VERSION git archive has not filled in"
    )
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "m")):
        subprocess.run([*git, clone, *words], check=True, timeout=60)
    commit = subprocess.run([*git, clone, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout[:12]
    first, again = describe(clone, newcomer.path), describe(clone, newcomer.path)
    assert first == again, "the file is written although nothing changed"
    assert first[0] == commit, "the commit"
    archive = newcomer.path / "archive"
    archive.mkdir()
    packed = subprocess.run([*git, clone, "archive", "HEAD"], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", archive], input=packed, check=True)
    assert describe(archive, newcomer.path)[0] == commit, "an archive"
    subprocess.run([*git, clone, "tag", "-a", "1.2.3", "-m", "m"], check=True)
    assert describe(clone, newcomer.path)[0] == "1.2.3", "a tag"
    (clone / "VERSION").write_text("x\n")
    assert describe(clone, newcomer.path)[0] == "1.2.3-dirty", "a change"
    (archive / "VERSION").write_text('"; fatalError() //\n')
    assert describe(archive, newcomer.path)[0] == "unknown", "a version that is none"


def complete(newcomer, script, *words):
    """What bash offers for the last word."""
    program = (
        f"source {shlex.quote(str(script))}\nCOMP_WORDS=({' '.join(map(shlex.quote, words))})\nCOMP_CWORD={len(words) - 1}\n"
        f"COMP_LINE={shlex.quote(' '.join(words))}\nCOMP_POINT=${{#COMP_LINE}}\n"
        f"_holdfast holdfast {shlex.quote(words[-1])} {shlex.quote(words[-2])}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", program], capture_output=True, text=True, timeout=60, cwd=newcomer.path
    )
    return set(done.stdout.split())


def test_bash_completes_verbs_options_and_paths(newcomer):
    """Verbs, options and paths are completed by bash; the other shells' scripts name the options."""
    script = newcomer.path / "completion.bash"
    script.write_bytes(newcomer.run("--generate-completion-script", "bash").stdout)
    newcomer.device()
    (newcomer.path / "lock.json").touch()
    assert complete(newcomer, script, "holdfast", "enro") == {"enroll"}, "a verb"
    assert "--connect" in complete(newcomer, script, "holdfast", "prove", "--c"), "an option"
    assert "lock" in complete(newcomer, script, "holdfast", "device", "show", "--dir", "lo"), "a folder"
    assert "lock.json" in complete(newcomer, script, "holdfast", "enroll", "--device", "lo"), "a file"
    assert "lock.json" in complete(newcomer, script, "holdfast", "vectors", "replay", "lo"), "an argument"
    for shell in ("zsh", "fish"):
        assert b"new-pin-file" in newcomer.run("--generate-completion-script", shell).stdout, f"{shell}: no option"


def test_there_is_a_manual_page_for_each_verb(newcomer):
    """There is a page for each verb, with its options, examples and exit statuses, and groff has nothing to say against them."""
    out = newcomer.path / "man"
    subprocess.run(
        [PROJECT / "Tools/manual-pages", "--holdfast", newcomer.holdfast, "--out", out], check=True, timeout=120
    )
    root = json.loads(newcomer.run("--experimental-dump-help").stdout)["command"]

    def verbs(command, path):
        yield path, command
        for verb in command.get("subcommands", []):
            if verb["commandName"] != "help":
                yield from verbs(verb, [*path, verb["commandName"]])

    pages = {page.name: page.read_text() for page in out.iterdir()}
    names = {"-".join(path): command for path, command in verbs(root, ["holdfast"])}
    assert {page.rsplit(".", 1)[0] for page in pages} == set(names), "the pages"
    for page, text in pages.items():
        sections = re.findall(r"^\.SH (.*)$", text, re.MULTILINE)
        wanted = {"NAME", "DESCRIPTION", "EXAMPLES", "SEE ALSO"} | (
            {"SYNOPSIS", "EXIT STATUS", "ENVIRONMENT"} if page.endswith(".1") else set()
        )
        assert wanted <= set(sections), f"{page} lacks {wanted - set(sections)}"
        for argument in names[page.rsplit(".", 1)[0]].get("arguments", []):
            name = argument.get("preferredName", {}).get("name")
            if name and page.endswith(".1") and argument["shouldDisplay"]:
                assert "\\-\\-" + name.replace("-", "\\-") in text, f"{page} lacks --{name}"
        if shutil.which("groff"):
            done = subprocess.run(
                ["groff", "-man", "-Tutf8", "-ww", "-z"], input=text.encode(), capture_output=True, timeout=60
            )
            assert (done.returncode, done.stderr) == (0, b""), page


def test_a_mistake_in_a_policy_is_named_by_its_member_and_line(newcomer):
    """A mistake in a policy is named by its member and line, where the policy is shown and where it is taken."""
    policy = newcomer.path / newcomer.device("strict") / "policy.json"
    good = policy.read_text()
    line = good[: good.index("integrity")].count("\n") + 1
    for right, wrong, wanted in (
        (
            "integrity",
            "integrety",
            f"line {line}: commands.configure.factors[0] must be one of integrity, device, otp, seal",
        ),
        ('"factors"', '"facters"', "commands.configure.facters is not a known member: did you mean factors?"),
        ('"commands"', '"comands"', "comands is not a known member: did you mean commands?"),
        ('"version": 1', '"version": 1,\n  "version": 1', "line 3: version occurs twice"),
        ('"version": 1,', '"version": 1', "line 3: this is not JSON"),
        ('"accept_unsigned": false', '"accept_unsigned": "s3cret"', "line 3: accept_unsigned must be true or false"),
        (good, "", "this is not JSON"),
        (good, "[]", "line 1: it must be an object"),
    ):
        text = good.replace(right, wrong, 1)
        policy.write_text(text)
        message, _ = newcomer.refuse(MALFORMED, "device", "policy", "--dir", "strict")
        assert wanted in message and "s3cret" not in message, f"{wrong}: {message}"
        assert wanted in newcomer.run("device", "show", "--dir", "strict").stdout.decode(), f"{wrong}: device show"
        (newcomer.path / "policy.json").write_text(text)
        message, _ = newcomer.refuse(MALFORMED, "device", "init", "--dir", "none", "--policy", "policy.json")
        assert wanted in message, f"{wrong}: {message}"
    policy.write_text(good)


def test_a_mistake_in_a_services_policy_is_named_by_its_member_and_line(newcomer):
    """Likewise for the policy of a service."""
    newcomer.run("service", "init", "--dir", "service")
    policy = newcomer.path / "service" / "policy.json"
    good = policy.read_text()
    line = good[: good.index('"devices"')].count("\n") + 1
    for right, wrong, wanted in (
        (
            '"devices": "listed"',
            '"devices": "s3cret"',
            f"policy.json, line {line}: devices must be one of listed, first-come",
        ),
        ('"devices"', '"device"', f"line {line}: device is not a known member: did you mean devices?"),
        ('"devices": "listed"', '"devices": "listed", "token_seconds": 0', "token_seconds "),
        (good, good[:-3], "this is not JSON"),
    ):
        policy.write_text(good.replace(right, wrong, 1))
        message, _ = newcomer.refuse(MALFORMED, "service", "images", "--dir", "service")
        assert wanted in message and "s3cret" not in message, f"{wrong}: {message}"
        assert "each once" not in message, f"no member is a list: {message}"


def test_an_activation_that_waits_is_shown_and_may_be_removed(newcomer):
    """An activation that waits is shown, and may be removed; a name that there is not is said to be none."""
    where = ("--dir", newcomer.device("users"))
    newcomer.refuse(MALFORMED, "device", "user", "remove", *where, "alice")
    newcomer.run("device", "user", "add", *where, "alice")
    listed = newcomer.run("device", "user", "list", *where)
    assert b"alice  can activate" in listed.stdout, "the activation is not shown"
    assert b"no users" not in listed.stderr, f"a user is on the way, but it says {listed.stderr}"
    codes = json.loads(newcomer.run("device", "user", "list", *where, "--json").stdout)["codes"]
    assert [(code["user"], code["for"]) for code in codes] == [("alice", "activation")], "the codes"
    removed = json.loads(newcomer.run("device", "user", "remove", *where, "alice", "--json").stdout)
    assert removed == {"user": "alice", "state": "activation-removed"}, "what was removed"
    assert json.loads(newcomer.run("device", "user", "list", *where, "--json").stdout) == {"users": [], "codes": []}, (
        "the rest"
    )
    assert b"there are no users" in newcomer.run("device", "user", "list", *where).stderr, (
        "it does not say that there are none"
    )
    newcomer.refuse(MALFORMED, "device", "user", "remove", *where, "alice")


def test_a_trust_has_a_begin_an_end_and_a_label_and_the_log_is_shown_by_level_and_time(newcomer):
    newcomer.device("dated")
    newcomer.run("service", "init", "--dir", "dated-service")
    key = newcomer.run("service", "show", "--dir", "dated-service", "--json").stdout
    (newcomer.path / "dated.json").write_bytes(key)
    trust = ["device", "trust", "--dir", "dated", "dated.json"]
    newcomer.run(*trust, "--from", "2027-01-01T00:00:00Z", "--until", "2028-01-01T00:00:00Z", "--label", "backend")
    line = 'from 2027-01-01T00:00:00Z until 2028-01-01T00:00:00Z "backend"'
    for verb in ("show", "floor"):
        assert line in newcomer.run("device", verb, "--dir", "dated").stdout.decode(), f"device {verb}"
    shown = json.loads(newcomer.run("device", "show", "--dir", "dated", "--all", "--json").stdout)
    assert shown["issuers"][0]["until"] == 1830297600 and shown["issuers"][0]["label"] == "backend"
    assert (shown["starts"], shown["disorderly_ends"], shown["private_key"]) == (0, 0, "in a file")
    newcomer.run(*trust, "--label", "spare")
    assert line.replace("backend", "spare") in newcomer.run("device", "show", "--dir", "dated").stdout.decode(), (
        "what is not named stays"
    )
    newcomer.run(*trust, "--from", "2029-01-01T00:00:00Z", status=USAGE)
    past = newcomer.run(*trust, "--from", "2019-01-01T00:00:00Z", "--until", "2020-01-01T00:00:00Z")
    assert b"--until is in the past" in past.stderr
    for wrong in (
        ["--from", "2028-01-01T00:00:00Z", "--until", "2027-01-01T00:00:00Z"],
        ["--label", "x" * 65],
        ["--until", "never"],
        ["--remove", "--label", "x"],
    ):
        newcomer.run(*trust, *wrong, status=USAGE)

    def names(*options):
        entries = json.loads(newcomer.run("device", "audit", "--dir", "dated", "--json", *options).stdout)["entries"]
        return [entry["event"] for entry in entries]

    assert names() == ["created", "issuer-trusted", "issuer-trusted", "issuer-trusted"]
    assert names("--level", "notice") == names()
    assert names("--level", "warning") == []
    assert names("--until", "2020-01-01T00:00:00Z") == []
    assert names("--since", "2020-01-01T00:00:00Z", "--until", "2100-01-01T00:00:00Z", "--last", "1") == [
        "issuer-trusted"
    ]
    (newcomer.path / "parts").mkdir()
    cut = ["device", "audit", "--dir", "dated", "--to"]
    newcomer.run(*cut, "parts", "--bytes", "4095", status=USAGE)
    newcomer.run(*cut, "nothing", "--bytes", "4096", status=USAGE)
    files = json.loads(newcomer.run(*cut, "parts", "--bytes", "4096", "--json").stdout)["files"]
    assert files == ["parts/audit-1-4.jsonl"]
    newcomer.run("device", "audit", "--file", files[0], "--verify")


def test_each_key_of_a_set_is_trusted_and_one_bad_key_refuses_the_whole_set(newcomer):
    newcomer.device("several")
    keys = []
    for name in ("first-service", "second-service"):
        newcomer.run("service", "init", "--dir", name)
        keys.append(json.loads(newcomer.run("service", "show", "--dir", name, "--json").stdout)["issuer"])
    good = {**keys[1], "use": "sig", "alg": "ES256", "kid": "any"}
    bad = [
        {**keys[0], "use": "enc"},
        {**keys[0], "alg": "RS256"},
        {**keys[0], "d": keys[0]["x"]},
        {**keys[0], "x": keys[0]["y"]},
        {"kty": "oct", "k": "AA"},
        "key",
    ]
    trust = ("device", "trust", "--dir", "several", "-")
    for content in [[]] + [[good, key] for key in bad] + [[good] * 65, "keys", None]:
        newcomer.run(*trust, stdin=json.dumps({"keys": content}).encode(), status=MALFORMED)

    def trusted():
        return json.loads(newcomer.run("device", "show", "--dir", "several", "--all", "--json").stdout)["issuers"]

    assert trusted() == []
    done = newcomer.run(*trust, "--json", "--label", "fleet", stdin=json.dumps({"keys": [keys[0], good]}).encode())
    assert [key["state"] for key in json.loads(done.stdout)["keys"]] == ["trusted", "trusted"]
    assert [issuer["label"] for issuer in trusted()] == ["fleet", "fleet"]


def test_a_repository_for_apt_offers_the_packages_and_replaces_the_one_before(tmp_path):
    if any(shutil.which(name) is None for name in ("dpkg-deb", "dpkg-scanpackages", "apt-get")):
        pytest.skip("this is no Debian system")
    packages, made = tmp_path / "debs", tmp_path / "out" / "apt"
    script = [PROJECT / "packaging/build-repository", packages, made]
    packages.mkdir()
    assert subprocess.run(script, capture_output=True, check=False).returncode == UNAVAILABLE, "nothing was there"
    lists, sources = tmp_path / "lists", tmp_path / "sources.list"
    (lists / "partial").mkdir(parents=True)
    sources.write_text(f"deb [trusted=yes] file:{made} ./\n")
    options = {"Dir::State::lists": lists, "Dir::Cache": tmp_path, "Dir::Etc::sourcelist": sources}
    options |= {"Dir::Etc::sourceparts": "/nonexistent", "APT::Sandbox::User": "root"}
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    for version in ("1.2.3", "1.2.4"):
        control = tmp_path / version / "DEBIAN" / "control"
        control.parent.mkdir(parents=True)
        fields = {"Package": "holdfast-try", "Version": version, "Architecture": "amd64", "Description": "x"}
        fields["Maintainer"] = "A <a@b.invalid>"
        control.write_text("".join(f"{name}: {value}\n" for name, value in fields.items()))
        deb = packages / f"holdfast-try_{version}_amd64.deb"
        subprocess.run(["dpkg-deb", "--build", tmp_path / version, deb], check=True, capture_output=True)
        subprocess.run(script, check=True, capture_output=True)
        subprocess.run(["apt-get", *words, "update"], check=True, capture_output=True)
        policy = subprocess.run(["apt-cache", *words, "policy", "holdfast-try"], check=True, capture_output=True)
        assert f"Candidate: {version}" in policy.stdout.decode()
    assert os.listdir(made.parent) == ["apt"]
