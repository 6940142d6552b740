// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A shared library that is loaded at run time, so that this one starts on machines without it: the
// CUDA driver, NCCL. A library once loaded stays loaded until the process ends, on purpose: such
// libraries start threads and register exit handlers, and the functions that were taken out of
// this one are used long after this object is gone. So objects of this class are plain values.
//
// Open() answers Unavailable when nothing could be loaded, with every name that was tried and the
// loader's own reason for each; Symbol() answers NotFound, with the library's file and the symbol.
// A name with a slash is a file; one without is searched for as dlopen(3) says. Thread-safe.
//
//   const base::LibraryNames choice = base::ChooseLibrary(
//       options.library, {"WEIGHT_SYNC_LIBCUDA"}, {"libcuda.so.1", "libcuda.so"});
//   WS_ASSIGN_OR_RETURN(auto library, base::DynamicLibrary::Open(choice.names));
//   WS_ASSIGN_OR_RETURN(auto* init, library.Symbol<int(unsigned)>("cuInit"));

#ifndef WEIGHT_SYNC_BASE_DYNAMIC_LIBRARY_H_
#define WEIGHT_SYNC_BASE_DYNAMIC_LIBRARY_H_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weight_sync::base {

// Which library to load, and at whose word.
struct LibraryNames {
  std::vector<std::string> names;
  std::string variable;  // the environment variable that chose the name, if one did
  bool chosen = false;   // by a path or a variable: the user's word, so nothing else is tried
};

// `path` if it is not empty; else the first of the environment `variables` that is set and not
// empty; else the `usual` names.
LibraryNames ChooseLibrary(absl::string_view path, std::initializer_list<const char*> variables,
                           std::initializer_list<const char*> usual);

class DynamicLibrary {
 public:
  // Loads the first of `names` that can be. InvalidArgument for an empty name, which dlopen(3)
  // would take for the program itself.
  static absl::StatusOr<DynamicLibrary> Open(absl::Span<const std::string> names);

  // The function called `name`, which the caller knows to be a `Function`, such as int(unsigned).
  template <typename Function>
  absl::StatusOr<Function*> Symbol(const char* name) const {
    absl::StatusOr<void*> address = Address(name);
    if (!address.ok()) return std::move(address).status();
    return reinterpret_cast<Function*>(*address);
  }

  // The file that was loaded, as the loader found it.
  const std::string& path() const { return path_; }

 private:
  DynamicLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  absl::StatusOr<void*> Address(const char* name) const;

  void* handle_;
  std::string path_;
};

}  // namespace weight_sync::base

#endif  // WEIGHT_SYNC_BASE_DYNAMIC_LIBRARY_H_
