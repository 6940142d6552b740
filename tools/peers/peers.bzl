# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0

"""What every test against another project's program has to say."""

# Where tools/peers/setup looks for environments.
PEER_ENVIRONMENT_VARIABLES = [
    "HOME",
    "WEIGHT_SYNC_PEERS",
    "XDG_CACHE_HOME",
]

# Outside the sandbox, which does not show it the environments; alone, as servers are large.
PEER_TAGS = [
    "exclusive",
    "external",
    "no-sandbox",
    "peer",
]
