// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/axis_pattern.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {
namespace {

using Factor = AxisPattern::Factor;
using Dimension = AxisPattern::Dimension;

class Parser {
 public:
  explicit Parser(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Dimension>> Run() {
    std::vector<Dimension> dims;
    for (;;) {
      SkipSpaces();
      if (at_ == text_.size()) return dims;
      if (dims.size() == Shape::kMaxRank) {
        return Error(at_, absl::StrCat("more than ", Shape::kMaxRank, " dimensions"));
      }
      WS_ASSIGN_OR_RETURN(Dimension dim, ParseDimension());
      dims.push_back(std::move(dim));
    }
  }

 private:
  absl::StatusOr<Dimension> ParseDimension() {
    Dimension dim;
    if (Take('(')) {
      const size_t open = at_ - 1;
      for (;;) {
        SkipSpaces();
        if (Take(')')) break;
        if (at_ == text_.size()) return Error(open, "this ( has no )");
        WS_RETURN_IF_ERROR(ParseFactor(dim));
      }
      if (dim.factors.empty()) return Error(open, "nothing between the parentheses");
    } else if (Take('1')) {
      if (at_ < text_.size() && IsNameByte(text_[at_])) {
        return Error(at_ - 1, "a name begins with a letter");
      }
    } else {
      WS_RETURN_IF_ERROR(ParseFactor(dim));
    }
    dim.padded = Take('+');
    if (at_ < text_.size() && text_[at_] != ' ') {
      return Error(at_, "a space was expected here");
    }
    return dim;
  }

  absl::Status ParseFactor(Dimension& dim) {
    const size_t start = at_;
    Factor factor;
    if (Take('{')) {
      if (at_ < text_.size() && absl::ascii_isdigit(text_[at_])) {
        factor.kind = Factor::Kind::kConstant;
        if (!TakeNumber(factor.value) || !Take('/') || !TakeNumber(factor.size) || !Take('}')) {
          return Error(start, "a constant index is {index/size}");
        }
        if (factor.value >= factor.size) return Error(start, "the index is not below the size");
        dim.factors.push_back(std::move(factor));
        return absl::OkStatus();
      }
      factor.kind = Factor::Kind::kIndex;
      factor.name = TakeName();
      if (factor.name.empty() || !Take('}')) return Error(start, "an index is {name}");
    } else {
      factor.kind = Factor::Kind::kAxis;
      factor.name = TakeName();
      if (factor.name.empty()) return Error(at_, "an axis, an index or a dimension was expected");
    }
    for (const std::string& seen : names_) {
      if (seen == factor.name) {
        return Error(start, absl::StrCat("'", seen, "' occurs twice, so it is ambiguous"));
      }
    }
    names_.push_back(factor.name);
    dim.factors.push_back(std::move(factor));
    return absl::OkStatus();
  }

  static bool IsNameByte(char c) { return absl::ascii_isalnum(c) || c == '_'; }

  void SkipSpaces() {
    while (Take(' ')) {
    }
  }

  bool Take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string TakeName() {
    const size_t start = at_;
    if (at_ < text_.size() && absl::ascii_isalpha(text_[at_])) {
      while (at_ < text_.size() && IsNameByte(text_[at_])) ++at_;
    }
    return std::string(text_.substr(start, at_ - start));
  }

  bool TakeNumber(int64_t& number) {
    const size_t start = at_;
    while (at_ < text_.size() && absl::ascii_isdigit(text_[at_])) ++at_;
    return absl::SimpleAtoi(text_.substr(start, at_ - start), &number);
  }

  absl::Status Error(size_t at, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("axis pattern '", text_.substr(0, at), " >>>", text_.substr(at), "': ", what));
  }

  absl::string_view text_;
  size_t at_ = 0;
  std::vector<std::string> names_;
};

}  // namespace

absl::StatusOr<AxisPattern> AxisPattern::Parse(absl::string_view text) {
  AxisPattern pattern;
  WS_ASSIGN_OR_RETURN(pattern.dims_, Parser(text).Run());
  pattern.text_ = std::string(text);
  return pattern;
}

}  // namespace weight_sync::refit
