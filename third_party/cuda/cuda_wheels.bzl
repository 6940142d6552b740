# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0

"""A CUDA toolkit put together from the pinned wheels of pins.bzl.

Bazel's repository cache, keyed by sha256, is asked first. What it lacks is downloaded by pip, which
takes where from and through which proxy out of the machine's own settings.
"""

load(":pins.bzl", "CUDA_PINS")
load(":toolkit.bzl", "missing_pieces", "nccl_build_file", "toolkit_build_file")

# Downloads, their copies in the repository cache, and what is unpacked from them.
_NEEDED_MB = 1200

_PYTHONS = ["python3", "python3.13", "python3.12", "python3.11", "python3.10", "python3.9"]

def _wheel(pin):
    """Where a wheel lies in the repository. Bazel unpacks by suffix and does not know .whl."""
    return "wheels/{}.zip".format(pin["package"])

def _free_mb(ctx):
    """The free space of the disk that the repository is on, or None if df cannot tell."""
    df = ctx.execute(["df", "-Pk", "."])
    if df.return_code:
        return None
    columns = [word for word in df.stdout.splitlines()[-1].split(" ") if word]
    return int(columns[3]) // 1024

def _find_pip(ctx):
    """The start of a command line that is pip, or None."""
    found = [ctx.which(name) for name in _PYTHONS] + [ctx.path("/usr/bin/python3")]
    pythons = [python for python in found if python and python.exists]
    for python in pythons:
        if ctx.execute([python, "-m", "pip", "--version"]).return_code == 0:
            return [python, "-m", "pip"]

    # Debian's python3 has no pip of its own, but with python3-venv it can make one.
    for python in pythons:
        if ctx.execute([python, "-m", "venv", "venv"]).return_code == 0:
            return [ctx.path("venv/bin/python"), "-m", "pip"]
    return None

def _downloaded(ctx, pin):
    """The path of the wheel that pip downloaded for `pin`."""
    prefix = "{}-{}-".format(pin["package"].replace("-", "_"), pin["version"])
    for path in ctx.path("pip").readdir():
        if path.basename.startswith(prefix):
            return path
    fail("pip downloaded no wheel {}*".format(prefix))

def _download(ctx, pins):
    """Has pip download `pins` to where _wheel() says. Returns why it could not, or None."""
    if ctx.execute(["uname", "-sm"]).stdout.strip() != "Linux x86_64":
        return "the pinned wheels are for Linux on x86-64"
    pip = _find_pip(ctx)
    if not pip:
        return ("CUDA's wheels are downloaded by pip, and no Python here has it. " +
                "Debian: apt-get install python3-venv (or python3-pip)")
    ctx.file("requirements.txt", "".join([
        "{}=={} --hash=sha256:{}\n".format(pin["package"], pin["version"], pin["sha256"])
        for pin in pins
    ]))
    ctx.report_progress("pip downloads CUDA's wheels (300 MB)")
    pip_result = ctx.execute(
        pip + [
            "download",
            "--dest=pip",
            "--disable-pip-version-check",
            "--no-cache-dir",
            "--no-deps",
            "--no-input",
            "--only-binary=:all:",
            "--progress-bar=off",
            "--require-hashes",
            "--requirement=requirements.txt",
        ],
        # On the disk whose free space was looked at.
        environment = {"TMPDIR": str(ctx.path("."))},
        timeout = 3600,
    )
    if pip_result.return_code:
        words = pip_result.stderr.strip() or pip_result.stdout.strip()
        if "DO NOT MATCH THE HASHES" in words:
            fail("a CUDA wheel is not the pinned one (third_party/cuda/pins.bzl). pip says:\n" + words)

        # A fault of its own pip reports with a traceback, whose end says what it was.
        return "pip could not download CUDA's wheels:\n" + "\n".join(words.splitlines()[-8:])
    for pin in pins:
        downloaded = _downloaded(ctx, pin)
        ctx.download(url = "file://{}".format(downloaded), output = _wheel(pin), sha256 = pin["sha256"])
        ctx.delete(downloaded)
    return None

def fetch_wheels(ctx):
    """Puts every pinned wheel where _wheel() says, and into Bazel's repository cache.

    A wheel whose bytes are not the pinned ones fails the build here.

    Args:
      ctx: the repository_ctx.

    Returns:
      Why they could not be had, or None.
    """
    free = _free_mb(ctx)
    if free != None and free < _NEEDED_MB:
        return ("the disk is too full for CUDA's wheels: they need {} MB, and {} has {} MB free. " +
                "Free some, or move Bazel's folder with --output_user_root").format(
            _NEEDED_MB,
            ctx.path("."),
            free,
        )
    pins = CUDA_PINS.values()

    # The repository cache answers by sha256 alone; this URL leads nowhere.
    missing = [pin for pin in pins if not ctx.download(
        url = "file:///not-in-the-repository-cache/{}".format(pin["package"]),
        output = _wheel(pin),
        sha256 = pin["sha256"],
        allow_fail = True,
    ).success]
    why_not = _download(ctx, missing) if missing else None
    for leftover in ["pip", "requirements.txt", "venv"]:
        ctx.delete(leftover)
    return why_not

def _cuda_wheels_repository_impl(ctx):
    why_not = fetch_wheels(ctx)
    if why_not:
        fail("\n\nno CUDA toolkit: {}\n\nOr name one of your own: WEIGHT_SYNC_CUDA_PATH=/usr/local/cuda\n".format(why_not))
    packages = {}
    for pin in CUDA_PINS.values():
        ctx.report_progress("unpacking " + pin["package"])
        ctx.extract(_wheel(pin), output = "site")
        ctx.delete(_wheel(pin))

        # The sha256 of another wheel, or of another version, would have been found in the cache.
        info = "site/{}-{}.dist-info/METADATA".format(pin["package"].replace("-", "_"), pin["version"])
        if not ctx.path(info).exists:
            fail("{} in third_party/cuda/pins.bzl is not the sha256 of {} {}".format(
                pin["sha256"],
                pin["package"],
                pin["version"],
            ))
        for line in ctx.read(info).splitlines():
            if line.startswith("Version: "):
                packages.setdefault(pin["package"], line[len("Version: "):])
    ctx.delete("wheels")
    root = "site/nvidia/cu13"
    missing = missing_pieces(ctx, root)
    if missing:
        fail("the pinned CUDA wheels do not have {}".format(", ".join(missing)))

    # Wheels carry no file modes that Bazel keeps.
    chmod = ctx.execute(["chmod", "-R", "a+x", root + "/bin", root + "/nvvm/bin"])
    if chmod.return_code:
        fail(chmod.stderr)
    ctx.file("resolved.json", struct(source = "wheels", packages = packages).to_json())
    ctx.file("BUILD.bazel", toolkit_build_file(root) + nccl_build_file(
        include = "site/nvidia/nccl/include",
        library = "site/nvidia/nccl/lib/libnccl.so.2",
    ))

# Keeps its 500 MB while CUDA is off, so that turning it on again costs nothing.
cuda_wheels_repository = repository_rule(implementation = _cuda_wheels_repository_impl)
