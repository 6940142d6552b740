#!/usr/bin/env python3
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts the test cases of one `bazel test`, from its build event file and every test.xml in it.

    bazel test --keep_going --build_event_json_file=events.json //...
    count_cases.py --exit-code $? events.json

Prints `PASSED FAILED SKIPPED` as three numbers; names each failure on stderr. Bazel's own summary
counts targets and calls a skipped case passed. Here a case counts as what it says it is, and these
count as one failed case each:

  - a target that was not built or not analysed
  - a test that left no readable test.xml, or no case in it
  - a test that failed though none of its cases did (a leak found at exit, for example)
  - an exit code other than 0 where nothing else explains it

Skipped cases are those that ran and said that they cannot do here what they are for. A test that is
incompatible with the platform, and so never ran, is none: check_skipped.py watches over those.
"""

import argparse
import collections
import json
import sys
import urllib.parse
import xml.etree.ElementTree


class Counts:
    """Cases passed, failed and skipped, with a line for each failure."""

    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.skipped = 0
        self.failures = []

    def fail(self, what):
        self.failed += 1
        self.failures.append(what)


def count_xml(path, label, counts):
    """Adds the cases of one test.xml. Returns how many it has."""
    cases = list(xml.etree.ElementTree.parse(path).iter("testcase"))
    for case in cases:
        name = f"{case.get('classname', '')}.{case.get('name', '')}".strip(".")
        if case.find("failure") is not None or case.find("error") is not None:
            counts.fail(f"{label}: {name}")
        elif (
            case.find("skipped") is not None
            or case.get("status") == "notrun"
            or case.get("result") in ("skipped", "suppressed")
        ):
            counts.skipped += 1
        else:
            counts.passed += 1
    return len(cases)


def count_test(label, results, counts):
    """Adds one test target. `results` are its testResult payloads, the last attempt of each shard."""
    cases = 0
    for result in results:
        failed_before = counts.failed
        outputs = {output["name"]: output["uri"] for output in result.get("testActionOutput", [])}
        try:
            path = urllib.parse.unquote(urllib.parse.urlparse(outputs["test.xml"]).path)
            cases += count_xml(path, label, counts)
        except (KeyError, OSError, xml.etree.ElementTree.ParseError) as error:
            counts.fail(f"{label}: no readable test.xml ({error!r})")
            cases += 1
        status = result.get("status", "NO_STATUS")
        if status not in ("PASSED", "FLAKY") and counts.failed == failed_before:
            counts.fail(f"{label}: {status}, though no case of it failed")
            cases += 1
    if cases == 0:
        counts.fail(f"{label}: no case in its test.xml")


def count_events(events, exit_code):
    """Counts over the decoded lines of a build event file."""
    counts = Counts()
    results = collections.defaultdict(dict)
    for event in events:
        identity = event["id"]
        if "testResult" in event:
            key = identity["testResult"]
            # Attempts of one shard come in order: the last one stays.
            results[key["label"]][(key.get("run"), key.get("shard"))] = event["testResult"]
        elif "targetCompleted" in identity:
            label = identity["targetCompleted"]["label"]
            skipped = event.get("aborted", {}).get("reason") == "SKIPPED"
            if not skipped and not event.get("completed", {}).get("success"):
                counts.fail(f"{label}: not built")
    for label, by_shard in sorted(results.items()):
        count_test(label, by_shard.values(), counts)
    if exit_code != 0 and counts.failed == 0:
        counts.fail(f"Bazel exited with {exit_code}")
    return counts


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--exit-code", type=int, required=True, help="Bazel's")
    parser.add_argument("events", help="the file that --build_event_json_file named")
    args = parser.parse_args()
    try:
        with open(args.events, encoding="utf-8") as file:
            events = [json.loads(line) for line in file]
    except OSError:  # Bazel never started
        events = []
    counts = count_events(events, args.exit_code)
    for failure in counts.failures:
        print(f"FAILED {failure}", file=sys.stderr)
    print(counts.passed, counts.failed, counts.skipped)


if __name__ == "__main__":
    main()
