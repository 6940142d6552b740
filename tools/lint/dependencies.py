# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Who may depend on whom, as queries over the build graph that must have no answer.

    tools, benchmarks, examples -> fakes -> weight_sync -> refit -> base       never the other way

They are asked of the targets as BUILD files declare them, all branches of every select() included,
so a forbidden edge is found in whatever configuration it is hidden. "Product" targets are those
that are not testonly; Bazel itself keeps testonly ones out of them.
"""

import os
import re
from typing import NamedTuple

from finding import Finding

# Folders of weight_sync that are no transport. Every other one is, without being named anywhere.
NO_TRANSPORTS = ("c_api", "conformance", "engines", "wire")

# Sees what the whole world sees and nothing more: a target of another repository.
STRANGER = "@com_google_absl//absl/base:core_headers"

CPP_SUFFIXES = (".cc", ".cu", ".cuh", ".h")


class Rule(NamedTuple):
    name: str
    reason: str


class NoPath(NamedTuple):
    """Nothing of `start` reaches anything of `end`."""

    rule: Rule
    start: str
    end: str


class NoTarget(NamedTuple):
    """The query answers with no target. `problem` is said of each one that it does answer with."""

    rule: Rule
    query: str
    problem: str


def everything(*folders):
    """Rules and files: a file of a folder can be depended on as well."""
    return "(" + " + ".join(f"//{folder}/...:*" for folder in folders) + ")"


def product(scope):
    return f"(kind(rule, {scope}) - attr(testonly, 1, {scope}))"


def seen_by(watchers, scope):
    """What at least one of `watchers` may depend on, strangers' share left out."""
    rules = f"kind(rule, {scope})"
    seen = " + ".join(f"visible({watcher}, {rules})" for watcher in watchers)
    return f"({seen}) - visible({STRANGER}, {rules})"


def rules(packages, watcher_of):
    """All rules. `packages` are the workspace's; `watcher_of` maps each to a target in it."""
    # Tests of every folder may have peers, whose environments tools/peers finds; all there is testonly.
    tools = f"({everything('tools')} - //tools/peers:*)"
    above_refit = f"{everything('weight_sync', 'fakes', 'benchmarks')} + {tools}"
    peers = Rule("peers-are-testonly", "other people's programs are for comparison, never a part")
    yield NoTarget(peers, product("//tools/peers:*"), "is not testonly")

    base = Rule("base-below-all", "base is what everything stands on and knows none of it")
    yield NoPath(base, "//base/...", f"{everything('refit')} + {above_refit}")

    refit = Rule(
        "refit-below-weight_sync",
        "refit turns parameters into buckets for whoever moves them, and knows no mover",
    )
    yield NoPath(refit, "//refit/...", above_refit)

    core = Rule(
        "weight_sync-below-fakes",
        "the product runs without fakes, tools and benchmarks; only its tests may use fakes",
    )
    yield NoPath(
        core, product("//weight_sync/..."), f"{everything('fakes', 'benchmarks')} + {tools}"
    )
    yield NoPath(core, "//weight_sync/...", f"{everything('benchmarks')} + {tools}")

    fakes = Rule(
        "fakes-below-tools", "fakes serve tests, benchmarks and the demo, and use none of these"
    )
    yield NoPath(fakes, "//fakes/...", f"{everything('benchmarks')} + {tools}")

    testonly = Rule(
        "fakes-are-testonly", "testonly = True keeps a fake out of whatever a user ships"
    )
    yield NoTarget(testonly, product("//fakes/..."), "is not testonly")
    yield NoPath(testonly, product("//tools/... + //benchmarks/..."), everything("fakes"))

    third_party = Rule(
        "third_party-below-all",
        "a dependency's folder adapts it for everybody; only its tests see it used by the project",
    )
    yield NoPath(
        third_party, product("//third_party/..."), f"{everything('base', 'refit')} + {above_refit}"
    )

    parts = sorted({p.split("/")[1] for p in packages if p.startswith("weight_sync/")})
    transports = [f"weight_sync/{part}" for part in parts if part not in NO_TRANSPORTS]
    engines = sorted(
        {"/".join(p.split("/")[:3]) for p in packages if p.startswith("weight_sync/engines/")}
    )

    apart = Rule(
        "transports-apart",
        "a transport can be changed, left out or added without a look at any other; what several"
        " need goes into weight_sync/wire",
    )
    for transport in transports:
        others = [other for other in transports if other != transport]
        if others:
            scope = f"//{transport}/..."
            yield NoPath(apart, product(scope), everything(*others))
            # Its tests may meet another transport inside a fake engine, but not use one themselves.
            direct = f"{scope} intersect rdeps({scope}, {everything(*others)}, 1)"
            yield NoTarget(apart, f"attr(testonly, 1, {direct})", "depends on another transport")

    engines_apart = Rule(
        "engines-and-transports-apart",
        "an engine's control API and the way that bytes take are chosen independently",
    )
    for engine in engines:
        others = [other for other in engines if other != engine] + transports
        yield NoPath(engines_apart, product(f"//{engine}/..."), everything(*others))
    for transport in transports:
        yield NoPath(engines_apart, product(f"//{transport}/..."), everything(*engines))

    wire = Rule(
        "wire-below-transports", "weight_sync/wire is protocols alone, which all transports share"
    )
    yield NoPath(
        wire,
        product("//weight_sync/wire/..."),
        f"({everything('weight_sync')} - {everything('weight_sync/wire')})",
    )

    factory = Rule(
        "factory-alone-chooses",
        "the driver, the options and the phases serve every transport and engine alike; only the"
        " factory knows which there are",
    )
    yield NoPath(
        factory,
        f"({product('//weight_sync:*')} - //weight_sync:factory)",
        everything(*transports, *engines),
    )

    visibility = Rule(
        "visibility-keeps-direction",
        "Bazel refuses the wrong edge where it is written: visibility names the folders above, or"
        " is public for what users depend on",
    )
    below = [watcher_of[p] for p in packages if p.split("/")[0] in ("base", "refit")]
    for folder in ("//weight_sync/...", "//fakes/...", "//benchmarks/...", tools):
        seen = seen_by(below, folder)
        yield NoTarget(visibility, seen, "is visible to base or refit and not public")
    for part in transports + engines:
        siblings = [
            watcher_of[p]
            for p in packages
            if p.startswith("weight_sync/") and not f"{p}/".startswith(f"{part}/")
        ]
        seen = seen_by(siblings, f"//{part}/...")
        yield NoTarget(visibility, seen, "is visible to weight_sync's other folders and not public")


def package_of(label):
    return label.lstrip("/").split(":")[0]


def build_file_of(label):
    return f"{package_of(label)}/BUILD.bazel".lstrip("/")


def check_no_path(query, rule, start, end):
    path = query(f"somepath({start}, {end})")
    if not path:
        return []
    # Every edge that goes straight across; where there is none, the path that goes round.
    edges = [
        [label, query(f"deps({label}, 1) intersect ({end})")[0]]
        for label in query(f"({start}) intersect rdeps({start}, {end}, 1)")
    ]
    return [
        Finding(
            build_file_of(labels[0]),
            0,
            rule.name,
            f"{' -> '.join(labels)} must not be: {rule.reason}",
        )
        for labels in edges or [path]
    ]


def check_no_target(query, rule, expression, problem):
    return [
        Finding(build_file_of(label), 0, rule.name, f"{label} {problem}: {rule.reason}")
        for label in query(expression)
    ]


def check_has_target(query, paths):
    """Every C++ file is named by some BUILD file: else nothing compiles it."""
    known = {
        re.sub("^/", "", label.lstrip("/").replace(":", "/"))
        for label in query('kind("source file", //...:*)')
    }
    text = "no BUILD file names it: nothing builds it, and no check sees it; give it a target"
    return [
        Finding(path, 0, "file-has-target", text)
        for path in paths
        if path.endswith(CPP_SUFFIXES) and not path.startswith("examples/") and path not in known
    ]


def check_dependencies(query, paths):
    """Checks all rules. `query` takes a query expression and returns the labels that answer it."""
    watcher_of = {}
    for label in sorted(query("kind(rule, //...)")):
        watcher_of.setdefault(package_of(label), label)
    findings = check_has_target(query, paths)
    for check in rules(sorted(watcher_of), watcher_of):
        if isinstance(check, NoPath):
            findings += check_no_path(query, *check)
        else:
            findings += check_no_target(query, *check)
    return findings
