// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/peers/peer_tree.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/log/absl_check.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/run_program.h"
#include "base/status_macros.h"
#include "gtest/gtest.h"
#include "refit/maps/all_families.h"
#include "refit/maps/load_checkpoint.h"
#include "refit/maps/map_source.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/packing/packer.h"
#include "refit/read_guard.h"
#include "refit/refit_info.h"
#include "refit/testing/run_refit.h"
#include "tools/peers/peer_environment.h"
#include "tools/peers/tiny_checkpoint.h"

namespace weight_sync::refit::testing {
namespace {

// Small, so that tensors are cut.
constexpr Geometry kGeometry = {/*bucket_bytes=*/4096, /*alignment=*/64};

PeerTree CopyOf(const Checkpoint& checkpoint) {
  PeerTree tree;
  for (const NamedTensor& t : checkpoint.tensors()) {
    tree[t.name] = {
        t.tensor.dtype(), t.tensor.shape(),
        std::vector<std::byte>(t.tensor.data(), t.tensor.data() + t.tensor.num_bytes())};
  }
  return tree;
}

std::vector<std::string> DifferencesOr(const PeerTree& theirs,
                                       const absl::StatusOr<PeerTree>& ours) {
  if (!ours.ok()) return {ours.status().ToString()};
  return TreeDifferences(theirs, *ours);
}

}  // namespace

absl::StatusOr<PeerTree> ReadTree(const std::string& path) {
  WS_ASSIGN_OR_RETURN(const Checkpoint file, Checkpoint::Open(path));
  return CopyOf(file);
}

void Exchange(PeerTree& tree, const std::string& a, const std::string& b) {
  PeerTensor& first = tree.at(a);
  PeerTensor& second = tree.at(b);
  ABSL_CHECK(first.shape == second.shape && first.bytes != second.bytes) << a << ", " << b;
  std::swap(first.bytes, second.bytes);
}

void ExchangeSlices(PeerTensor& tensor, int64_t a, int64_t b) {
  const auto slice = static_cast<int64_t>(tensor.bytes.size()) / tensor.shape[0];
  const auto first = tensor.bytes.begin() + a * slice, second = tensor.bytes.begin() + b * slice;
  ABSL_CHECK(!std::equal(first, first + slice, second));
  std::swap_ranges(first, first + slice, second);
}

std::vector<std::string> TreeDifferences(const PeerTree& theirs, const PeerTree& ours) {
  std::vector<std::string> differences;
  for (const auto& [name, tensor] : theirs) {
    const auto found = ours.find(name);
    if (found == ours.end()) {
      differences.push_back(absl::StrCat(name, " is theirs only"));
    } else if (tensor.dtype != found->second.dtype || tensor.shape != found->second.shape) {
      differences.push_back(absl::StrCat(name, " is ", tensor.dtype, tensor.shape, ", not ",
                                         found->second.dtype, found->second.shape));
    } else if (tensor.bytes != found->second.bytes) {
      differences.push_back(absl::StrCat(name, " has other bytes"));
    }
  }
  for (const auto& [name, tensor] : ours) {
    if (theirs.count(name) == 0) differences.push_back(absl::StrCat(name, " is ours only"));
  }
  return differences;
}

std::vector<std::string> PassedThrough(const WeightMap& map) {
  std::vector<std::string> names;
  for (int t = 0; t < map.hf().size(); ++t) {
    if (map.passes_through(t)) names.push_back(map.hf()[t].name);
  }
  return names;
}

absl::StatusOr<PeerCheckpoint> PeerCheckpoint::Open(const std::string& directory) {
  static const FamilyRegistry& families = *new FamilyRegistry(AllFamilies());
  WS_ASSIGN_OR_RETURN(ModelConfig config, ReadModelConfig(directory + "/config.json"));
  WS_ASSIGN_OR_RETURN(const Family* const family, families.Find(config.model_type));
  WS_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(directory));
  WS_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Record(checkpoint));
  PeerTree tensors = CopyOf(checkpoint);
  return PeerCheckpoint(family, std::move(config), std::move(checkpoint), std::move(manifest),
                        std::move(tensors));
}

absl::StatusOr<WeightMap> PeerCheckpoint::Build(const LayoutOptions& layout) const {
  return WeightMap::Build(*family_, config_, layout, {/*target=*/"", &manifest_});
}

absl::StatusOr<WeightMap> PeerCheckpoint::BuildWithoutManifest(const LayoutOptions& layout) const {
  return WeightMap::Build(*family_, config_, layout);
}

absl::StatusOr<PeerTree> PeerCheckpoint::Load(const WeightMap& map, const PeerTree& theirs) const {
  PeerTree tree;
  std::vector<MutableTrainerArray> arrays;
  for (const WeightMap::TrainerTensor& tensor : map.trainer()) {
    std::vector<int64_t> dims(tensor.shape.dims().begin(), tensor.shape.dims().end());
    const auto found = theirs.find(tensor.name);
    if (found != theirs.end() && found->second.shape.rank() == tensor.shape.rank()) {
      for (size_t d = 0; d < dims.size(); ++d) {
        const int64_t size = found->second.shape[static_cast<int>(d)];
        if (tensor.padded[d]) dims[d] = std::max(dims[d], size);
      }
    }
    WS_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    WS_ASSIGN_OR_RETURN(const int64_t bytes, ByteSize(config_.dtype, shape));
    PeerTensor& array = tree[tensor.name];
    // What is not loaded must not be what it should be.
    array = {config_.dtype, shape,
             std::vector<std::byte>(static_cast<size_t>(bytes), std::byte{0xa5})};
    arrays.push_back(
        {tensor.name, MutableTensorView::Contiguous(array.bytes.data(), array.dtype, array.shape)});
  }
  WS_RETURN_IF_ERROR(LoadCheckpoint(map, *checkpoint_, arrays));
  return tree;
}

absl::StatusOr<PeerTree> PeerCheckpoint::Refit(const WeightMap& map, const PeerTree& theirs) const {
  std::vector<TrainerArray> arrays;
  for (const auto& [name, tensor] : theirs) arrays.push_back({name, tensor.view()});
  StepGate gate;
  WS_ASSIGN_OR_RETURN(const std::unique_ptr<MapSource> source,
                      MapSource::Create(map, arrays, checkpoint_.get(), &gate));
  WS_ASSIGN_OR_RETURN(const std::vector<std::vector<std::byte>> table,
                      RunRefit(*source, kGeometry));
  PeerTree tree;
  for (int t = 0; t < map.hf().size(); ++t) {
    const TensorSpec& tensor = map.hf()[t];
    tree[tensor.name] = {tensor.dtype, tensor.shape, table[static_cast<size_t>(t)]};
  }
  return tree;
}

std::vector<std::string> PeerCheckpoint::LoadDifferences(const WeightMap& map,
                                                         const PeerTree& theirs) const {
  PeerTree comparable = theirs;
  if (!map.FindTrainer(map.tied_head()).has_value()) comparable.erase(map.tied_head());
  return DifferencesOr(comparable, Load(map, theirs));
}

std::vector<std::string> PeerCheckpoint::RefitDifferences(const WeightMap& map,
                                                          const PeerTree& theirs) const {
  return DifferencesOr(tensors_, Refit(map, theirs));
}

absl::StatusOr<PeerRun> RunPeer(const std::string& environment,
                                const std::vector<std::string>& command,
                                const std::vector<std::string>& families) {
  PeerRun run;
  WS_ASSIGN_OR_RETURN(run.published,
                      peers::TinyCheckpoint("all", /*seed=*/1, {"--max-shard-size", "200KB"}));
  std::vector<std::string> directories;
  for (const std::string& family : families) directories.push_back(run.Published(family));
  WS_ASSIGN_OR_RETURN(run.trees, RunPeerOn(environment, command, directories));
  return run;
}

absl::StatusOr<std::string> RunPeerOn(const std::string& environment,
                                      const std::vector<std::string>& command,
                                      const std::vector<std::string>& directories) {
  static int runs = 0;
  WS_ASSIGN_OR_RETURN(const std::string folder, peers::FindPeerEnvironment(environment));
  std::string out = absl::StrCat(::testing::TempDir(), "/peer_run_", ++runs);
  std::filesystem::create_directory(out);
  std::vector<std::string> whole = {folder + "/bin/python", "-I"};
  whole.insert(whole.end(), command.begin(), command.end());
  whole.push_back(out);
  whole.insert(whole.end(), directories.begin(), directories.end());
  const base::ProgramResult result = base::RunProgram(whole);
  if (result.exit_code == 0) return out;
  return absl::InternalError(absl::StrCat(absl::StrJoin(whole, " "), ": ", result.output));
}

}  // namespace weight_sync::refit::testing
