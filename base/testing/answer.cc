// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A small shared library for tests to load.

extern "C" int TestLibraryAnswer(int question) { return question + 1; }
