# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0

"""The one table of the source archives that weight_sync is built from.

Keys are repository names. Of each archive:

  title, version, license, purpose   for people
  build_file                         the BUILD file laid over the sources, or None to use their own
  patch                              applied with -p1, or None
  sources                            the files it can be unpacked from, in order of preference; of each:
    file          its name in the local archive cache (unique in this table)
    sha256        of the file
    strip_prefix  the folder in it that becomes the repository's root
    url           where upstream publishes these bytes, or None
    debian        their path on a Debian mirror, or None

Where Debian repacked a release its bytes differ from upstream's, so each has a pin of its own.
This file is plain data, which third_party/fetch_archives.py also reads as Python.
"""

ARCHIVES = {
    "com_google_absl": {
        "title": "Abseil",
        "version": "20240722.0",
        "license": "Apache-2.0",
        "purpose": "status, strings, containers, synchronization, time, logging",
        "build_file": None,
        "patch": "//third_party/absl:bazel4_platforms.patch",
        "sources": [
            {
                "file": "abseil-cpp-20240722.0.tar.gz",
                "sha256": "f50e5ac311a81382da7fa75b97310e4b9006474f9560ac46f54a9967f07d4ae3",
                "strip_prefix": "abseil-cpp-20240722.0",
                "url": "https://github.com/abseil/abseil-cpp/releases/download/20240722.0/abseil-cpp-20240722.0.tar.gz",
                "debian": None,
            },
            {
                "file": "abseil_20240722.0.orig.tar.gz",
                "sha256": "df6d1f5ef540725f3851201176a60486aab332410788465c9877910bb471c34a",
                "strip_prefix": "abseil-20240722.0",
                "url": None,
                "debian": "pool/main/a/abseil/abseil_20240722.0.orig.tar.gz",
            },
        ],
    },
    "bazel_skylib": {
        "title": "Bazel Skylib",
        "version": "1.0.3",
        "license": "Apache-2.0",
        "purpose": "loaded by Abseil's BUILD files",
        "build_file": None,
        "patch": None,
        "sources": [
            {
                "file": "bazel-skylib-1.0.3.tar.gz",
                "sha256": "1c531376ac7e5a180e0237938a2536de0c54d93f5c278634818e0efc952dd56c",
                "strip_prefix": "",
                "url": "https://github.com/bazelbuild/bazel-skylib/releases/download/1.0.3/bazel-skylib-1.0.3.tar.gz",
                "debian": None,
            },
            {
                "file": "bazel-skylib_1.0.3.orig.tar.xz",
                "sha256": "b22f0f38d9a1ac565fce8a43df3d284f6b8e5e8775bda54b5cb687bed46b6ea4",
                "strip_prefix": "bazel-skylib-1.0.3",
                "url": None,
                "debian": "pool/main/b/bazel-skylib/bazel-skylib_1.0.3.orig.tar.xz",
            },
        ],
    },
    "com_google_googletest": {
        "title": "GoogleTest",
        "version": "1.16.0",
        "license": "BSD-3-Clause",
        "purpose": "tests only",
        "build_file": "//third_party/googletest:googletest.BUILD",
        "patch": None,
        "sources": [
            {
                "file": "googletest-1.16.0.tar.gz",
                "sha256": "78c676fc63881529bf97bf9d45948d905a66833fbfa5318ea2cd7478cb98f399",
                "strip_prefix": "googletest-1.16.0",
                "url": "https://github.com/google/googletest/releases/download/v1.16.0/googletest-1.16.0.tar.gz",
                "debian": None,
            },
            {
                "file": "googletest_1.16.0.orig.tar.gz",
                "sha256": "2f54382b5d13d6cd0be2afc524f1e510d37f8ba78c2d439c5bea64ef37e30d01",
                "strip_prefix": "googletest-1.16.0",
                "url": None,
                "debian": "pool/main/g/googletest/googletest_1.16.0.orig.tar.gz",
            },
        ],
    },
    "com_github_google_benchmark": {
        "title": "Google Benchmark",
        "version": "1.9.1",
        "license": "Apache-2.0",
        "purpose": "benchmarks only",
        "build_file": "//third_party/benchmark:benchmark.BUILD",
        "patch": None,
        "sources": [
            {
                "file": "benchmark-1.9.1.tar.gz",
                "sha256": "32131c08ee31eeff2c8968d7e874f3cb648034377dfc32a4c377fa8796d84981",
                "strip_prefix": "benchmark-1.9.1",
                "url": "https://github.com/google/benchmark/archive/refs/tags/v1.9.1.tar.gz",
                "debian": "pool/main/b/benchmark/benchmark_1.9.1.orig.tar.gz",
            },
        ],
    },
    "weight_sync_libzmq": {
        "title": "libzmq",
        "version": "4.3.4",
        "license": "LGPL-3.0-or-later with static linking exception",
        "purpose": "control messages between a trainer and a colocated engine",
        "build_file": "//third_party/zmq:libzmq.BUILD",
        "patch": None,
        "sources": [
            {
                "file": "libzmq-4.3.4.tar.gz",
                "sha256": "0ff5a531c9ffaf0dfdc7dc78d13d1383088f454896d252934c429b2554d10559",
                "strip_prefix": "libzmq-4.3.4",
                "url": "https://github.com/zeromq/libzmq/archive/refs/tags/v4.3.4.tar.gz",
                "debian": "pool/main/z/zeromq3/zeromq3_4.3.4.orig.tar.gz",
            },
        ],
    },
    "weight_sync_cppzmq": {
        "title": "cppzmq",
        "version": "4.10.0",
        "license": "MIT",
        "purpose": "C++ interface of libzmq",
        "build_file": "//third_party/zmq:cppzmq.BUILD",
        "patch": None,
        "sources": [
            {
                "file": "cppzmq-4.10.0.tar.gz",
                "sha256": "c81c81bba8a7644c84932225f018b5088743a22999c6d82a2b5f5cd1e6942b74",
                "strip_prefix": "cppzmq-4.10.0",
                "url": "https://github.com/zeromq/cppzmq/archive/refs/tags/v4.10.0.tar.gz",
                "debian": "pool/main/c/cppzmq/cppzmq_4.10.0.orig.tar.gz",
            },
        ],
    },
    "weight_sync_json": {
        "title": "JSON for Modern C++",
        "version": "3.11.3",
        "license": "MIT",
        "purpose": "config.json, safetensors headers, reports",
        "build_file": "//third_party/json:json.BUILD",
        "patch": None,
        "sources": [
            {
                "file": "nlohmann-json-3.11.3.tar.gz",
                "sha256": "0d8ef5af7f9794e3263480193c491549b2ba6cc74bb018906202ada498a79406",
                "strip_prefix": "json-3.11.3",
                "url": "https://github.com/nlohmann/json/archive/refs/tags/v3.11.3.tar.gz",
                "debian": "pool/main/n/nlohmann-json3/nlohmann-json3_3.11.3.orig.tar.gz",
            },
        ],
    },
    "weight_sync_xxhash": {
        "title": "xxHash",
        "version": "0.8.3",
        "license": "BSD-2-Clause",
        "purpose": "digests of buckets and tensors",
        "build_file": "//third_party/xxhash:xxhash.BUILD",
        "patch": None,
        "sources": [
            {
                "file": "xxHash-0.8.3.tar.gz",
                "sha256": "aae608dfe8213dfd05d909a57718ef82f30722c392344583d3f39050c7f29a80",
                "strip_prefix": "xxHash-0.8.3",
                "url": "https://github.com/Cyan4973/xxHash/archive/refs/tags/v0.8.3.tar.gz",
                "debian": "pool/main/x/xxhash/xxhash_0.8.3.orig.tar.gz",
            },
        ],
    },
    "weight_sync_cli11": {
        "title": "CLI11",
        "version": "2.4.1",
        "license": "BSD-3-Clause",
        "purpose": "command lines of the tools",
        "build_file": "//third_party/cli11:cli11.BUILD",
        "patch": None,
        "sources": [
            {
                "file": "CLI11-2.4.1.tar.gz",
                "sha256": "73b7ec52261ce8fe980a29df6b4ceb66243bb0b779451dbd3d014cfec9fdbb58",
                "strip_prefix": "CLI11-2.4.1",
                "url": "https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.4.1.tar.gz",
                "debian": None,
            },
            {
                "file": "cli11_2.4.1+ds.orig.tar.xz",
                "sha256": "0b8fbf2398875f15f30a675c7f412123a2aaa38df2863e991de72004fd5f1292",
                "strip_prefix": "CLI11-2.4.1",
                "url": None,
                "debian": "pool/main/c/cli11/cli11_2.4.1+ds.orig.tar.xz",
            },
        ],
    },
    "weight_sync_httplib": {
        "title": "cpp-httplib",
        "version": "0.18.7",
        "license": "MIT",
        "purpose": "HTTP servers of fakes and tests only",
        "build_file": "//third_party/httplib:httplib.BUILD",
        "patch": None,
        "sources": [
            {
                "file": "cpp-httplib-0.18.7.tar.gz",
                "sha256": "b7b1e9e4e77565a5a9bc95e761d5df3e7c0e8ca37c90fd78b1b031bc6cb90fc1",
                "strip_prefix": "cpp-httplib-0.18.7",
                "url": "https://github.com/yhirose/cpp-httplib/archive/refs/tags/v0.18.7.tar.gz",
                "debian": None,
            },
            {
                "file": "cpp-httplib_0.18.7.orig.tar.xz",
                "sha256": "c88f6495da71e778c82c22995b547a92ceb41cc4016f9028df67106a24b9210d",
                "strip_prefix": "yhirose-cpp-httplib-5814e12",
                "url": None,
                "debian": "pool/main/c/cpp-httplib/cpp-httplib_0.18.7.orig.tar.xz",
            },
        ],
    },
}
