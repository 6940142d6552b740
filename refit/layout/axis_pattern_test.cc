// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/axis_pattern.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// "h (n d) {e} {0/2}+": the pattern as it was understood.
std::string Understood(const AxisPattern& pattern) {
  std::string out;
  for (const AxisPattern::Dimension& dim : pattern.dims()) {
    absl::StrAppend(&out, out.empty() ? "[" : " [");
    for (const AxisPattern::Factor& factor : dim.factors) {
      if (&factor != &dim.factors.front()) out += ' ';
      switch (factor.kind) {
        case AxisPattern::Factor::Kind::kAxis:
          absl::StrAppend(&out, "axis ", factor.name);
          break;
        case AxisPattern::Factor::Kind::kIndex:
          absl::StrAppend(&out, "index ", factor.name);
          break;
        case AxisPattern::Factor::Kind::kConstant:
          absl::StrAppend(&out, factor.value, " of ", factor.size);
          break;
      }
    }
    absl::StrAppend(&out, dim.padded ? "]+" : "]");
  }
  return out;
}

TEST(AxisPatternTest, UnderstandsEveryForm) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {"  ", ""},
      {"v h", "[axis v] [axis h]"},
      {" v   h ", "[axis v] [axis h]"},
      {"(n d) h", "[axis n axis d] [axis h]"},
      {"( n d )", "[axis n axis d]"},
      {"{e} h m", "[index e] [axis h] [axis m]"},
      {"{e} ({0/2} m) h", "[index e] [0 of 2 axis m] [axis h]"},
      {"(m {1/2})", "[axis m 1 of 2]"},
      {"v+ h", "[axis v]+ [axis h]"},
      {"(n d)+", "[axis n axis d]+"},
      {"{e}+ h", "[index e]+ [axis h]"},
      {"h 1", "[axis h] []"},
      {"long_name x2", "[axis long_name] [axis x2]"},
      {"a b c d e f g h",
       "[axis a] [axis b] [axis c] [axis d] [axis e] [axis f] [axis g] [axis h]"},
  };
  for (const auto& [text, understood] : cases) {
    const absl::StatusOr<AxisPattern> pattern = AxisPattern::Parse(text);
    ASSERT_TRUE(pattern.ok()) << pattern.status();
    EXPECT_EQ(Understood(*pattern), understood) << "'" << text << "'";
    EXPECT_EQ(pattern->text(), text);
  }
}

TEST(AxisPatternTest, RefusesWhatIsAmbiguousOrUnknownAndShowsThePlace) {
  struct Case {
    std::string text, shown, why;
  };
  const std::vector<Case> cases = {
      {"h h", "'h  >>>h'", "'h' occurs twice"},
      {"(n d) n", "'(n d)  >>>n'", "'n' occurs twice"},
      {"{e} e", "'{e}  >>>e'", "'e' occurs twice"},
      {"(n d h", "' >>>(n d h'", "has no )"},
      {"a ()", "'a  >>>()'", "nothing between"},
      {"n d)", "'n d >>>)'", "space was expected"},
      {"(n (d e))", "'(n  >>>(d e))'", "was expected"},
      {"{}", "' >>>{}'", "an index is {name}"},
      {"{e", "' >>>{e'", "an index is {name}"},
      {"{2/2} m", "' >>>{2/2} m'", "not below the size"},
      {"{0/0}", "' >>>{0/0}'", "not below the size"},
      {"{1} h", "' >>>{1} h'", "{index/size}"},
      {"{1/99999999999999999999} h", "' >>>{1/9", "{index/size}"},
      {"v++", "'v+ >>>+'", "space was expected"},
      {"+", "' >>>+'", "was expected"},
      {"h*2", "'h >>>*2'", "space was expected"},
      {"h 2", "'h  >>>2'", "was expected"},
      {"1a", "' >>>1a'", "begins with a letter"},
      {"_a", "' >>>_a'", "was expected"},
      {"h ... d", "'h  >>>...", "was expected"},
      {"h\td", "'h >>>\td'", "space was expected"},
      {"a b c d e f g h i", "'a b c d e f g h  >>>i'", "more than 8 dimensions"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(
        AxisPattern::Parse(c.text).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(c.shown), HasSubstr(c.why))))
        << "'" << c.text << "'";
  }
}

}  // namespace
}  // namespace weight_sync::refit
