// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The system's libcurl. Include this instead of <curl/curl.h>: where libcurl's headers are absent,
// it says which package has them.

#ifndef WEIGHT_SYNC_THIRD_PARTY_CURL_CURL_H_
#define WEIGHT_SYNC_THIRD_PARTY_CURL_CURL_H_

#if __has_include(<curl/curl.h>)
#include <curl/curl.h>
#else
#error "libcurl's headers are not installed: install the Debian package libcurl4-openssl-dev"
#endif

#endif  // WEIGHT_SYNC_THIRD_PARTY_CURL_CURL_H_
