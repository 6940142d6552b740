#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fails unless Bazel skipped exactly the targets that it was expected to skip.

    bazel test --build_event_json_file=events.json //...
    check_skipped.py [--expected LIST] events.json

Bazel skips, without an error, a target that is incompatible with the platform, and all that depends on
it: a mistake that made a test incompatible would look like success. LIST has one label a line, and
comments; without it no target may be skipped. The build has to be of all targets (//..., with no filter
on what is built): a target of LIST that it did not meet counts as one that was not skipped.
"""

import argparse
import json
import sys


def skipped(events):
    """The labels of what the decoded lines of a build event file say was skipped."""
    return {
        event["id"]["targetCompleted"]["label"]
        for event in events
        if event.get("aborted", {}).get("reason") == "SKIPPED" and "targetCompleted" in event["id"]
    }


def completed(events):
    """How many targets the build has come to an end with, in one way or another."""
    return sum("targetCompleted" in event["id"] for event in events)


def expected_labels(lines):
    lines = (line.partition("#")[0].strip() for line in lines)
    return {line for line in lines if line}


def differences(events, expected):
    """What is wrong, one sentence each."""
    if not completed(events):
        return ["the build event file names no target: nothing can be said about what was skipped"]
    found = skipped(events)
    return [
        f"{label} was skipped, and is not expected to be" for label in sorted(found - expected)
    ] + [f"{label} was not skipped, and is expected to be" for label in sorted(expected - found)]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--expected", help="the file with the labels")
    parser.add_argument("events", help="the file that --build_event_json_file named")
    args = parser.parse_args()
    expected = set()
    if args.expected:
        with open(args.expected, encoding="utf-8") as file:
            expected = expected_labels(file)
    with open(args.events, encoding="utf-8") as file:
        events = [json.loads(line) for line in file]
    wrong = differences(events, expected)
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    print(f"{len(skipped(events))} targets skipped, {len(expected)} expected")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
