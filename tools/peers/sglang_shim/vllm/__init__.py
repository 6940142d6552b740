# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""Not vLLM: the one function that SGLang takes from it on most CPUs (see _custom_ops.py)."""
