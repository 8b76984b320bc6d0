"""Programs for guests: Debian's, where Tests/Guest/fetch puts them, and others of this machine, with their libraries."""

import pathlib
import re
import shutil
import subprocess

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / ".guest" / "root"
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
LIBRARY_FOLDERS = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")


def copy_program(path, root):
    """Copies a program into /usr/bin below the root, and each library to where the program looks for it. Returns the libraries' places
    below the root."""
    fetched = ":".join(str(FOLDER / place) for place in LIBRARY_FOLDERS)
    shown = subprocess.run(
        ["ldd", path],
        env={"PATH": SYSTEM_PATH, "LD_LIBRARY_PATH": fetched},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    copy(path, root / "usr/bin" / path.name)
    libraries = []
    for library in re.findall(r"/\S+", shown):
        libraries.append(library.removeprefix(str(FOLDER)).lstrip("/"))
        copy(library, root / libraries[-1])
    return libraries


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
