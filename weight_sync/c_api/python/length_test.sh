#!/usr/bin/env bash
# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
#
# The helper stays a page that one reads in one go: at most 150 lines, of at most 100 columns.

set -euo pipefail

awk 'length > 100 { print FILENAME ":" FNR " is longer than 100 columns"; bad = 1 }
     END { if (NR > 150) { print FILENAME " has " NR " lines"; bad = 1 } exit bad }' \
  weight_sync/c_api/python/weight_sync_ctypes.py
