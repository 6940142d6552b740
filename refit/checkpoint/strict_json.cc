// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/strict_json.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "refit/checkpoint/utf8.h"

namespace weight_sync::refit {
namespace {

constexpr size_t kMaxDepth = 127;

// Walks the text before it is built into a value: nlohmann's values keep the last of equal keys,
// and its parser without exceptions does not say what was wrong.
class Checker : public nlohmann::json_sax<nlohmann::json> {
 public:
  const std::string& error() const { return error_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool start_object(size_t) override { return Open(); }
  bool end_object() override { return Close(); }

  bool key(string_t& key) override {
    if (keys_.back().insert(key).second) return true;
    error_ = absl::StrCat("key '", key, "' appears twice");
    return false;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& e) override {
    error_ = e.what();
    return false;
  }

 private:
  bool Open() {
    if (keys_.size() == kMaxDepth) {
      error_ = absl::StrCat("nested more than ", kMaxDepth, " levels deep");
      return false;
    }
    keys_.emplace_back();
    return true;
  }
  bool Close() {
    keys_.pop_back();
    return true;
  }

  std::vector<absl::flat_hash_set<std::string>> keys_;  // of every object and array that is open
  std::string error_;
};

}  // namespace

absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text) {
  if (!IsValidUtf8(text)) return absl::InvalidArgumentError("not UTF-8");
  // nlohmann skips a byte order mark, and takes a NUL for the end of the text.
  if (absl::StartsWith(text, "\xef\xbb\xbf")) {
    return absl::InvalidArgumentError("begins with a byte order mark");
  }
  if (absl::StrContains(text, '\0')) return absl::InvalidArgumentError("holds a NUL byte");

  Checker checker;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &checker)) {
    return absl::InvalidArgumentError(checker.error());
  }
  return nlohmann::json::parse(text.begin(), text.end(), /*cb=*/nullptr,
                               /*allow_exceptions=*/false);
}

}  // namespace weight_sync::refit
