// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// OutputDirectory: a folder whose files appear when all of them are complete. They are made in a
// hidden folder inside it, and then moved. Whatever was not published is removed, also the folder
// itself if it was made here; so it is when SIGINT, SIGTERM or SIGHUP ends the process.
//
//   WS_ASSIGN_OR_RETURN(auto out, OutputDirectory::Create("/models/new"));
//   MakeFilesIn(out->staging());
//   WS_RETURN_IF_ERROR(out->Publish());

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_OUTPUT_DIRECTORY_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_OUTPUT_DIRECTORY_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/common/temporary_directory.h"
#include "tools/weight_sync/common/on_interrupt.h"

namespace weight_sync::convert {

class OutputDirectory {
 public:
  // Makes the folder if it is not there. FailedPrecondition if it is and holds something.
  static absl::StatusOr<std::unique_ptr<OutputDirectory>> Create(const std::string& path);

  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;
  ~OutputDirectory();

  const std::string& path() const { return path_; }
  const std::string& staging() const { return staging_.path(); }

  // Moves the files of staging() to where they belong: an index last, since with it a checkpoint of
  // shards is there.
  absl::Status Publish();

 private:
  OutputDirectory(std::string path, bool made, tools::TemporaryDirectory staging)
      : path_(std::move(path)),
        made_(made),
        staging_(std::move(staging)),
        on_interrupt_([this] { Remove(); }) {}

  absl::Status MoveFiles();
  void Remove() const;

  const std::string path_;
  const bool made_;
  const tools::TemporaryDirectory staging_;
  tools::OnInterrupt on_interrupt_;
};

}  // namespace weight_sync::convert

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_OUTPUT_DIRECTORY_H_
