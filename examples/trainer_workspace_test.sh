#!/usr/bin/env bash
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
#
# The workspace of a trainer that depends on this repository: it builds and its tests pass with the
# options that its .bazelrc states and no others, its training loop keeps an engine equal, what it
# may depend on is what public_targets.txt lists, and everything else is refused.
#
# Runs a Bazel of its own, outside the sandbox, on the clone that this test was built from. Its
# output base goes with the test; compilers' outputs come from the cache of tools/bazelw.

set -euo pipefail

root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
readonly root
readonly workspace="$root/examples/trainer_workspace"
readonly output_user_root="$TEST_TMPDIR/bazel"
readonly scratch="$TEST_TMPDIR/scratch"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

[[ -e $workspace/WORKSPACE ]] || fail "no $workspace: this test needs the tag no-sandbox"

# nested SECONDS ARGUMENTS...: Bazel, as a user in the trainer's workspace runs it, with a deadline.
nested() {
  (cd "$workspace" && exec env -u TEST_TMPDIR timeout --kill-after=60 "$1" "$root/tools/bazelw" \
    --output_user_root="$output_user_root" --max_idle_secs=60 "${@:2}")
}

# nested_build COMMAND ARGUMENTS...: for commands that build.
nested_build() {
  nested 1800 "$1" --color=no --curses=no --noshow_progress --symlink_prefix=/ "${@:2}"
}

# Leaves no server and no files.
clean_up() {
  local status=$? pid
  pid=$(cat "$output_user_root"/*/server/server.pid.txt) || pid=""
  nested 60 shutdown || true
  if [[ -n $pid ]] && kill -9 "$pid" 2>/dev/null; then
    echo "FAILED: Bazel's server $pid outlived its shutdown and was killed" >&2
    status=1
  fi
  rm -rf "$output_user_root" "$scratch"
  exit "$status"
}
trap clean_up EXIT

# --- It builds, its tests pass, and its loop keeps the engine equal -------------------------------

nested_build test --test_output=errors //... || fail "the workspace does not build and test"

printed=$(nested_build run //:trainer) || fail "the trainer failed"
echo "$printed"
expected=$(for step in {0..7}; do echo "step $step: version $step, engine equal"; done)
steps=$(sed -E 's/, [0-9]+ bytes in [0-9.]+ ms//; s/, loss [0-9.]+$//' <<<"$printed")
[[ $steps == "$expected" ]] || fail "the trainer's lines are not those of eight verified syncs"
awk '{ if (NR > 1 && $NF >= last) exit 1; last = $NF }' <<<"$printed" ||
  fail "the loss does not fall at every step: the engine does not answer with the trainer's weights"

# --- What it may depend on is what is listed, and that builds -------------------------------------

packages=$(cd "$root" && find . -path ./examples -prune -o -path './.*' -prune -o \
  -name BUILD.bazel -printf '@weight_sync//%h:all\n' | sed 's|//\./\{0,1\}|//|')
all="set(${packages//$'\n'/ })"
visible=$(nested 300 query --noshow_progress \
  "visible(//:trainer, kind('cc_(library|import) rule', $all)) except attr(testonly, 1, $all)" | sort) ||
  fail "the query failed"
listed=$(grep '^//' "$root/examples/public_targets.txt" | sed 's|^|@weight_sync|' | sort)
if [[ $visible != "$listed" ]]; then
  diff <(echo "$listed") <(echo "$visible") >&2 || true
  fail "the public targets (>) are not those that examples/public_targets.txt lists (<):" \
    "list what is meant to be part of the API, and make the rest private"
fi
# shellcheck disable=SC2086  # one word a target
nested_build build $listed || fail "a public target does not build in another workspace"

# --- What is not is refused -----------------------------------------------------------------------

mkdir -p "$scratch/refused"
cat >"$scratch/refused/BUILD.bazel" <<'EOF'
load("@rules_cc//cc:defs.bzl", "cc_library")

cc_library(name = "public", deps = ["@weight_sync//weight_sync:factory"])
cc_library(name = "internal", deps = ["@weight_sync//weight_sync/ipc:ring"])
cc_library(name = "internal_of_base", deps = ["@weight_sync//base:shared_memory"])
cc_library(name = "dependency", deps = ["@weight_sync//third_party/zmq"])
cc_library(name = "fake", deps = ["@weight_sync//fakes:fake_engine"])
cc_library(name = "fake_in_test", testonly = True, deps = ["@weight_sync//fakes:fake_engine"])
EOF

# analyzed NAME: Bazel's analysis of //refused:NAME.
analyzed() {
  nested_build build --nobuild --package_path="%workspace%:$scratch" "//refused:$1" 2>&1
}

# refused NAME TARGET REASON: it fails, and that is why.
refused() {
  local output
  if output=$(analyzed "$1"); then fail "a consumer can depend on $2"; fi
  grep -qF -e "'@weight_sync$2' $3" <<<"$output" || {
    echo "$output" >&2
    fail "$2 is refused, but not as \"$3\""
  }
  echo "refused: $2 $3"
}

analyzed public >/dev/null || fail "the public target is refused, too: this part proves nothing"
refused internal //weight_sync/ipc:ring "is not visible from target"
refused internal_of_base //base:shared_memory "is not visible from target"
refused dependency //third_party/zmq:zmq "is not visible from target"
refused fake //fakes:fake_engine "and doesn't have testonly attribute set"
refused fake_in_test //fakes:fake_engine "is not visible from target"

# --- Optimised, which is also without assertions --------------------------------------------------

nested_build build --compilation_mode=opt //:trainer || fail "it does not build with -c opt"

echo "PASSED"
