#!/usr/bin/env bash
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Each argument lists the families in what one family's target depends on: itself alone.

set -euo pipefail

status=0
for closure in "$@"; do
  family=$(basename "$closure" _closure)
  if [[ "$(<"$closure")" != "//refit/maps:$family" ]]; then
    echo "//refit/maps:$family depends on:" && cat "$closure"
    status=1
  fi
done
exit "$status"
