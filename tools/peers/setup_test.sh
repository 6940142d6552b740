#!/usr/bin/env bash
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
#
# tools/peers/setup with a Python that installs nothing, in front of the others on PATH.

set -uo pipefail

setup=$PWD/tools/peers/setup
export HOME=$TEST_TMPDIR/home WEIGHT_SYNC_PEERS=$TEST_TMPDIR/peers
export LOG=$TEST_TMPDIR/log PYENV_ROOT=$TEST_TMPDIR/no-pyenv
unset XDG_CACHE_HOME
fakes=$TEST_TMPDIR/fakes
PATH=$fakes:/usr/bin:/bin
failures=0

# expect WHAT CONDITION...
expect() {
  local what=$1
  shift
  "$@" && return
  echo "FAILED: $what: $*"
  sed 's/^/    /' "$TEST_TMPDIR/out" "$TEST_TMPDIR/err"
  failures=$((failures + 1))
}
says() { grep -qF -- "$1" "$TEST_TMPDIR/err"; }
fails() { ! "$@"; }
run() { "$setup" "$@" >"$TEST_TMPDIR/out" 2>"$TEST_TMPDIR/err"; }
folder() { head -n 1 "$TEST_TMPDIR/out"; }
installs() { grep -c "^install" "$LOG"; }
reset() {
  rm -rf "$WEIGHT_SYNC_PEERS" "$fakes"
  mkdir -p "$WEIGHT_SYNC_PEERS" "$fakes"
  : >"$LOG"
  rm -f "$TEST_TMPDIR"/fail "$TEST_TMPDIR"/slow
  make_python 3.11 "$fakes/python3.11"
}

# A Python of version $1 at $2, that makes environments whose pip only notes that it was asked.
make_python() {
  mkdir -p "$(dirname "$2")"
  cat >"$2" <<EOF
#!/usr/bin/env bash
version=$1
self=$2
EOF
  cat >>"$2" <<'EOF'
case "$1 ${2:-}" in
  "-c import sys, venv, ensurepip"*) [[ ${3:-} == "$version" || -z ${3:-} ]] ;;
  "-c import sys; print(sys.executable)"*) echo "$self" ;;
  "-c import sysconfig"*) echo "$(dirname "$(dirname "$0")")/lib/site-packages" ;;
  "-c "*) ;; # what must run there
  "-m venv")
    mkdir -p "$3/bin" "$3/lib/site-packages/torch/cpu"
    cp "$self" "$3/bin/python"
    ;;
  "-m pip")
    echo "install $*" >>"$LOG"
    [[ -d $TMPDIR && $TMPDIR == "$WEIGHT_SYNC_PEERS"/* ]] || exit 1
    if [[ -e $TEST_TMPDIR/slow ]]; then
      : >"$TEST_TMPDIR/installing"
      while [[ -e $TEST_TMPDIR/slow ]]; do read -rt 0.05 <> <(:); done
    fi
    [[ ! -e $TEST_TMPDIR/fail ]]
    ;;
  "-m compileall") ;;
  "-I "*) exec /usr/bin/python3 "$@" ;;
  *)
    echo "fake python: unexpected: $*" >&2
    exit 1
    ;;
esac
EOF
  chmod +x "$2"
}

# Builds once, tells the folder, finds it again.
reset
expect "not found before" fails run --find torch
expect "says how to build" says "build it: tools/peers/setup torch"
expect "finding makes nothing" test -z "$(ls "$WEIGHT_SYNC_PEERS")"
expect "builds" run torch
built=$(folder)
expect "complete" test -e "$built/.complete"
expect "hashes required" grep -q -- "--require-hashes --only-binary :all: .*/torch.txt" "$LOG"
expect "nothing beyond the list" grep -q -- "--no-deps" "$LOG"
expect "no downloads left" test ! -e "$built/tmp"
expect "again" run torch
expect "not built again" test "$(installs)" = 1
expect "found" run --find torch
expect "the same" test "$(folder)" = "$built"

# Several in one call, in order; an unknown one is seen before anything is built.
reset
expect "unknown" fails run torch vlm
expect "named" says "knows no environment 'vlm'; known: safetensors torch"
expect "nothing built" test "$(installs)" = 0
expect "several" run torch sglang
expect "both folders" test "$(sed 's/.*\/\([a-z]*\)-.*/\1/' "$TEST_TMPDIR/out" | xargs)" = \
  "torch sglang"
expect "no name" fails run
expect "usage" says "usage: setup NAME..."
expect "find takes one" fails run --find torch sglang

# What was left half-built is built again; so is what has lost its Python.
reset
run torch
built=$(folder)
rm "$built/.complete"
touch "$built/half"
expect "half-built is not found" fails run --find torch
expect "built again" run torch
expect "from nothing" test ! -e "$built/half"
rm "$built/bin/python"
expect "without Python it is not found" fails run --find torch
expect "built again" run torch
expect "three times" test "$(installs)" = 3

# A failed installation leaves nothing but its lock.
reset
touch "$TEST_TMPDIR/fail"
expect "pip fails" fails run torch
expect "says what" says "pip could not install what"
expect "nothing left" test "$(ls "$WEIGHT_SYNC_PEERS")" = torch.lock
rm "$TEST_TMPDIR/fail"
expect "then it works" run torch

# Two at once: one builds, the other waits and finds it.
reset
touch "$TEST_TMPDIR/slow"
rm -f "$TEST_TMPDIR/installing"
"$setup" torch >"$TEST_TMPDIR/out1" 2>&1 &
first=$!
deadline=$((SECONDS + 60))
while [[ ! -e $TEST_TMPDIR/installing ]] && ((SECONDS < deadline)); do read -rt 0.05 <> <(:); done
"$setup" torch >"$TEST_TMPDIR/out2" 2>"$TEST_TMPDIR/err" &
second=$!
while ! says "waiting for another setup of 'torch'" && ((SECONDS < deadline)); do
  read -rt 0.05 <> <(:)
done
expect "the second waits" says "waiting for another setup of 'torch'"
rm "$TEST_TMPDIR/slow"
expect "the first builds" wait "$first"
expect "the second finds" wait "$second"
expect "one installation" test "$(installs)" = 1

# A killed build does not block the next.
reset
touch "$TEST_TMPDIR/slow"
rm -f "$TEST_TMPDIR/installing"
set -m # a process group of its own, to be killed whole
"$setup" torch >/dev/null 2>&1 &
first=$!
set +m
deadline=$((SECONDS + 60))
while [[ ! -e $TEST_TMPDIR/installing ]] && ((SECONDS < deadline)); do read -rt 0.05 <> <(:); done
kill -KILL -- "-$first"
wait "$first" 2>/dev/null
rm "$TEST_TMPDIR/slow"
expect "after a killed one" run torch

# Too little room: df says what the file system says, so it stands in for a full one.
reset
cat >"$fakes/df" <<'EOF'
#!/bin/sh
printf 'Filesystem 1024-blocks Used Available Capacity Mounted on\nsmall 1000000 0 1000000 0%% /\n'
EOF
chmod +x "$fakes/df"
expect "full" fails run vllm
expect "says how much" says "MB free (set WEIGHT_SYNC_PEERS to move it)"
expect "says where" says "$WEIGHT_SYNC_PEERS has 976 MB free"
expect "nothing tried" test "$(installs)" = 0

# A Python that is not there; a pyenv shim for a version that is not chosen fails when it runs.
reset
printf '#!/bin/sh\necho "pyenv: python3.12: command not found" >&2\nexit 127\n' >"$fakes/python3.12"
chmod +x "$fakes/python3.12"
if ! /usr/bin/python3.12 -c 'import ensurepip' 2>/dev/null; then
  expect "no Python 3.12" fails run tunix
  expect "says which" says "'tunix' needs Python 3.12 with its venv module"
  expect "says where it looked" says "not in $PYENV_ROOT/versions"
  expect "says what to do" says "pyenv install 3.12"
fi
make_python 3.12 "$PYENV_ROOT/versions/3.12.1/bin/python"
expect "found under pyenv" run tunix
python=$(folder)/bin/python
expect "another one's is not taken" test \
  "$("$python" -c 'import sys; print(sys.executable)')" = "$PYENV_ROOT/versions/3.12.1/bin/python"

# Folders of other versions are named, not removed.
reset
mkdir "$WEIGHT_SYNC_PEERS/torch-2.0.0-1-00000000"
expect "builds" run torch
expect "names the old one" says "may be removed: rm -r $WEIGHT_SYNC_PEERS/torch-2.0.0-1-00000000"
expect "and only that" test "$(grep -c 'may be removed' "$TEST_TMPDIR/err")" = 1
expect "leaves it" test -d "$WEIGHT_SYNC_PEERS/torch-2.0.0-1-00000000"

# Large equal files of complete environments are kept once; others stay.
share=$PWD/tools/peers/share_files.py
one=$TEST_TMPDIR/one two=$TEST_TMPDIR/two
mkdir -p {"$one","$two"}/lib/python3/site-packages/p
touch "$one/.complete"
for environment in "$one" "$two"; do
  packages=$environment/lib/python3/site-packages/p
  head -c 2000000 /dev/zero >"$packages/equal"
  head -c 1000 /dev/zero >"$packages/small"
  (head -c 2000000 /dev/zero; echo "$environment") >"$packages/different"
done
links() { stat -c %h "$two/lib/python3/site-packages/p/$1"; }
expect "shares" /usr/bin/python3 "$share" "$two" "$two" "$one"
expect "equal: once" test "$(links equal)" = 2
expect "small: twice" test "$(links small)" = 1
expect "different: twice" test "$(links different)" = 1

if ((failures)); then exit 1; fi
echo PASS
