"""fs-verity: the kernel, `holdfast` and an independent computation agree about an executable's digest."""

import base64
import hashlib
import json

import executable_text
import fsverity
from guest import DISK_MODULES, FOLDER, Image, make_disk
from holdfast_peer import cbor, measurement
from holdfast_peer.checks import expect, expect_equal


def observe(lab):
    disk = make_disk(lab.folder / "verity.disk", 64, "-O", "verity", "-b", "4096")
    folder = lab.folder / "verity"
    folder.mkdir()
    # In the initramfs, no program has fs-verity.
    image = Image(folder, DISK_MODULES, [lab.holdfast, FOLDER / "usr/bin/fsverity"], met=lab.met)
    seen = lab.run("verity.sh", image=image, disks=[disk])
    seen["file"] = lab.holdfast.read_bytes()
    seen["libraries"] = {place: (image.root / place).read_bytes() for place in image.libraries[lab.holdfast]}
    return seen


def components(seen, name):
    """What a `holdfast measure` found, by the component's id."""
    _, _, app, device, *_ = cbor.decode(base64.b64decode(seen["measured-" + name][0]))
    return dict(app + device)


def verity_image(seen):
    return hashlib.sha256(b"sha256\0" + fsverity.digest(seen["file"])).digest()


def verdict(seen, name):
    exit_status, _, said = seen[name][0].partition(" ")
    return int(exit_status), json.loads(said)["status"]


def kernel_agrees(seen):
    """the kernel's fs-verity digest is what the file's bytes give by the documentation"""
    expect_equal(seen["kernel"][0], "sha256:" + fsverity.digest(seen["file"]).hex(), "digest")


def image_of_verity(seen):
    """app.image of a file with fs-verity is SHA-256 of sha256, 0x00 and the fs-verity digest"""
    expect_equal(components(seen, "verity")["app.image"], verity_image(seen), "app.image")


def image_for_a_user(seen):
    """an ordinary user measures the same app.image as root"""
    expect_equal(components(seen, "user")["app.image"], verity_image(seen), "app.image")


def image_without(seen):
    """app.image of the same file without fs-verity is SHA-256 of the file"""
    for name in ("plain", "initramfs"):
        expect_equal(components(seen, name)["app.image"], hashlib.sha256(seen["file"]).digest(), f"app.image, {name}")


def text_of_each(seen):
    """app.text is what the segments in the files of executable and libraries give, with fs-verity and without"""
    for name in ("verity", "user", "plain", "initramfs"):
        verity = fsverity.digest(seen["file"]) if name in ("verity", "user") else None
        expect_equal(
            components(seen, name)["app.text"],
            executable_text.digest(seen["file"], seen["libraries"], verity),
            f"app.text, {name}",
        )


def trees_of_each(seen):
    """with tree digests, fs-verity is represented as it is without them, and everything else is a tree"""
    for name in ("verity-trees", "plain-trees"):
        verity = fsverity.digest(seen["file"]) if name == "verity-trees" else None
        image = verity_image(seen) if verity else measurement.tree_digest(seen["file"])
        expect_equal(components(seen, name)["app.image"], image, f"app.image, {name}")
        text = executable_text.tree_digest(seen["file"], seen["libraries"], verity)
        expect_equal(components(seen, name)["app.text"], text, f"app.text, {name}")


def all_else_is_the_same(seen):
    """fs-verity and trees change nothing but what says so"""
    others = [
        {key: value for key, value in components(seen, name).items() if key not in ("app.image", "app.text")}
        for name in ("verity", "plain", "initramfs", "verity-trees", "plain-trees")
    ]
    expect(all(other == others[0] for other in others), f"components differ: {others}")


def write_is_refused(seen):
    """nobody writes to a file with fs-verity, root neither"""
    expect("Operation not permitted" in seen["write"][0], seen["write"][0])


def proof_is_accepted(seen):
    """a prover with fs-verity is enrolled, proves, and is accepted, before and after a copy has tried"""
    for name in ("proved", "again"):
        expect_equal(verdict(seen, name), (0, "accepted"), name)


def copy_is_denied(seen):
    """the same bytes in a file without fs-verity are denied: integrityMismatch"""
    expect_equal(verdict(seen, "copied"), (1, "integrityMismatch"), "verdict")


def copy_is_explained(seen):
    """explain names app.image and app.text, and nothing else, as what changed"""
    status, _, report = seen["explained"][0].partition(" ")
    expect_equal((status, json.loads(report)["changed"]), ("1", ["app.image", "app.text"]), "explain")


CHECKS = [
    kernel_agrees,
    image_of_verity,
    image_for_a_user,
    image_without,
    text_of_each,
    trees_of_each,
    all_else_is_the_same,
    write_is_refused,
    proof_is_accepted,
    copy_is_denied,
    copy_is_explained,
]
