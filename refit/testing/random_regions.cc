// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/testing/random_regions.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace weight_sync::refit::testing {
namespace {

// The factors of each dimension, as words: "n", "{e}", "{0/2}".
std::vector<std::vector<std::string>> Words(const std::string& text) {
  std::vector<std::vector<std::string>> dims;
  bool merged = false;
  std::string spaced;
  for (const char c : text) {
    if (c == '(' || c == ')') {
      absl::StrAppend(&spaced, " ", std::string(1, c), " ");
    } else {
      spaced += c;
    }
  }
  for (const absl::string_view part : absl::StrSplit(spaced, ' ', absl::SkipEmpty())) {
    const std::string word(part);
    if (word == "(") {
      merged = true;
      dims.emplace_back();
    } else if (word == ")") {
      merged = false;
    } else {
      if (!merged) dims.emplace_back();
      if (word != "1") dims.back().push_back(word);
    }
  }
  return dims;
}

// Index and size of one word.
std::pair<int64_t, int64_t> Place(const std::string& word, const AxisSizes& sizes,
                                  const std::map<std::string, int64_t>& values) {
  if (word[0] != '{') return {values.at(word), sizes.at(word)};
  const std::string inner = word.substr(1, word.size() - 2);
  const size_t slash = inner.find('/');
  if (slash == std::string::npos) return {values.at(inner), sizes.at(inner)};
  return {std::stoll(inner.substr(0, slash)), std::stoll(inner.substr(slash + 1))};
}

Shape ShapeOf(const std::string& text, const AxisSizes& sizes,
              const std::map<std::string, int64_t>& values) {
  std::vector<int64_t> dims;
  for (const std::vector<std::string>& words : Words(text)) {
    dims.push_back(1);
    for (const std::string& word : words) dims.back() *= Place(word, sizes, values).second;
  }
  return Shape::Create(dims).value();
}

int64_t Flat(const std::string& text, const AxisSizes& sizes,
             const std::map<std::string, int64_t>& values) {
  int64_t flat = 0;
  for (const std::vector<std::string>& words : Words(text)) {
    for (const std::string& word : words) {
      const auto [index, size] = Place(word, sizes, values);
      flat = flat * size + index;
    }
  }
  return flat;
}

std::string RandomText(std::vector<std::string> words, std::mt19937& rng) {
  std::shuffle(words.begin(), words.end(), rng);
  std::string text;
  int dims = 0;
  for (size_t i = 0; i < words.size(); ++dims) {
    const size_t left = words.size() - i;
    const size_t merged = 1 + (rng() % 2 == 0 ? 0 : rng() % left);
    if (!text.empty()) text += ' ';
    if (merged == 1) {
      text += words[i];
    } else {
      text += '(';
      for (size_t k = 0; k < merged; ++k) absl::StrAppend(&text, k == 0 ? "" : " ", words[i + k]);
      text += ')';
    }
    i += merged;
  }
  if (dims < Shape::kMaxRank && rng() % 8 == 0) text += text.empty() ? "1" : " 1";
  return text;
}

std::vector<std::map<std::string, int64_t>> AllValues(const std::vector<std::string>& names,
                                                      const AxisSizes& sizes) {
  std::vector<std::map<std::string, int64_t>> all = {{}};
  for (const std::string& name : names) {
    std::vector<std::map<std::string, int64_t>> longer;
    for (const auto& values : all) {
      for (int64_t i = 0; i < sizes.at(name); ++i) {
        longer.push_back(values);
        longer.back()[name] = i;
      }
    }
    all = longer;
  }
  return all;
}

}  // namespace

std::vector<std::pair<int64_t, int64_t>> RandomRelation::Pairs(
    const std::map<std::string, int64_t>& indices) const {
  std::vector<std::string> axes;
  for (const auto& [name, size] : sizes) {
    if (indices.count(name) == 0) axes.push_back(name);
  }
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (std::map<std::string, int64_t> values : AllValues(axes, sizes)) {
    values.insert(indices.begin(), indices.end());
    pairs.emplace_back(Flat(a_text, sizes, values), Flat(b_text, sizes, values));
  }
  return pairs;
}

std::vector<std::map<std::string, int64_t>> RandomRelation::Combinations() const {
  return AllValues(index_names, sizes);
}

RandomRelation MakeRandomRelation(std::mt19937& rng) {
  RandomRelation relation;
  std::vector<std::string> a_words, b_words;
  const int axes = static_cast<int>(rng() % 5);
  for (int i = 0; i < axes; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    relation.sizes[name] = 1 + static_cast<int64_t>(rng() % 4);
    a_words.push_back(name);
    b_words.push_back(name);
  }
  const int indices = static_cast<int>(rng() % 3);
  for (int i = 0; i < indices; ++i) {
    const std::string name = absl::StrCat("i", i);
    relation.sizes[name] = 1 + static_cast<int64_t>(rng() % 3);
    relation.index_names.push_back(name);
    const int sides = static_cast<int>(rng() % 3);
    if (sides != 1) a_words.push_back(absl::StrCat("{", name, "}"));
    if (sides != 0) b_words.push_back(absl::StrCat("{", name, "}"));
  }
  if (rng() % 2 == 0) b_words.push_back(rng() % 2 == 0 ? "{1/3}" : "{0/2}");
  relation.a_text = RandomText(a_words, rng);
  relation.b_text = RandomText(b_words, rng);
  std::map<std::string, int64_t> zeros;
  for (const auto& [name, size] : relation.sizes) zeros[name] = 0;
  relation.a_shape = ShapeOf(relation.a_text, relation.sizes, zeros);
  relation.b_shape = ShapeOf(relation.b_text, relation.sizes, zeros);
  return relation;
}

}  // namespace weight_sync::refit::testing
