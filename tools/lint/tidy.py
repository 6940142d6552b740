# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over everything that Bazel builds, through the aspect of clang_tidy.bzl."""

import json
import os
import re
import subprocess
import tempfile
import urllib.parse

from finding import Finding

ASPECT = "//tools/lint:clang_tidy.bzl%clang_tidy"

# Where Bazel lets an action work, in front of the workspace's own paths.
WORK_FOLDER = re.compile(r"[^\s']*/execroot/weight_sync/")

FOUND = re.compile(
    r"^(?:\./)?(?P<path>[^\s:]+):(?P<line>\d+):\d+: (?:error|warning): "
    r"(?P<message>.*) \[(?P<check>[\w.-]+)(?:,-warnings-as-errors)?\]$",
    re.MULTILINE,
)


def findings_in(report):
    """The findings of one file's clang-tidy output."""
    return [
        Finding(
            match["path"],
            int(match["line"]),
            "clang-tidy",
            f"{match['message']} ({match['check']})",
        )
        for match in FOUND.finditer(WORK_FOLDER.sub("", report))
    ]


def reports_named_by(events):
    """The paths of the aspect's outputs, from the lines of a JSON build event file."""
    paths = set()
    for line in events:
        for file in json.loads(line).get("namedSetOfFiles", {}).get("files", []):
            if file["name"].endswith(".clang_tidy"):
                paths.add(urllib.parse.unquote(urllib.parse.urlparse(file["uri"]).path))
    return sorted(paths)


def check_clang_tidy(program, root):
    with tempfile.TemporaryDirectory() as scratch:
        events = os.path.join(scratch, "events.json")
        command = ["tools/bazelw", "build", "--keep_going", "//..."]
        command += [f"--aspects={ASPECT}", "--output_groups=clang_tidy"]
        command += [f"--define=clang_tidy={program}", f"--build_event_json_file={events}"]
        command += ["--curses=no", "--color=no", "--show_progress_rate_limit=60"]
        # Bazel prints what it has to say on stderr, which goes to the terminal.
        built = subprocess.run(command, cwd=root, check=False).returncode == 0
        reports = []
        if os.path.exists(events):
            with open(events, encoding="utf-8") as file:
                reports = reports_named_by(file)
    findings = set()
    for report in reports:
        with open(report, encoding="utf-8", errors="replace") as file:
            findings.update(findings_in(file.read()))
    if not built:
        text = "could not check every file: see what Bazel printed above"
        findings.add(Finding("tools/lint/clang_tidy.bzl", 0, "clang-tidy", text))
    elif not reports:
        text = "has checked no file at all"
        findings.add(Finding("tools/lint/clang_tidy.bzl", 0, "clang-tidy", text))
    return sorted(findings)
