// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weight_sync::base {
namespace {

std::string LoaderError() {
  const char* text = ::dlerror();
  return text != nullptr ? text : "no reason was given";
}

}  // namespace

LibraryNames ChooseLibrary(absl::string_view path, std::initializer_list<const char*> variables,
                           std::initializer_list<const char*> usual) {
  LibraryNames out;
  out.chosen = true;
  if (!path.empty()) {
    out.names = {std::string(path)};
    return out;
  }
  for (const char* variable : variables) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    out.names = {value};
    out.variable = variable;
    return out;
  }
  out.chosen = false;
  out.names.assign(usual.begin(), usual.end());
  return out;
}

absl::StatusOr<DynamicLibrary> DynamicLibrary::Open(absl::Span<const std::string> names) {
  std::vector<std::string> reasons;
  for (const std::string& name : names) {
    if (name.empty()) return absl::InvalidArgumentError("the name of a library is empty");
    // RTLD_NOW: what the library itself lacks is told here, not by an abort at a later call.
    void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      std::string reason = LoaderError();
      if (!absl::StrContains(reason, name)) reason = absl::StrCat(name, ": ", reason);
      reasons.push_back(std::move(reason));
      continue;
    }
    link_map* map = nullptr;
    const bool known =
        ::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map->l_name[0] != '\0';
    return DynamicLibrary(handle, known ? map->l_name : name);
  }
  return absl::UnavailableError(
      absl::StrCat("cannot load a library: ",
                   reasons.empty() ? "no name was given" : absl::StrJoin(reasons, "; ")));
}

absl::StatusOr<void*> DynamicLibrary::Address(const char* name) const {
  ::dlerror();  // forgets an older error
  void* address = ::dlsym(handle_, name);
  if (address == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("library ", path_, " has no symbol ", name, ": ", LoaderError()));
  }
  return address;
}

}  // namespace weight_sync::base
