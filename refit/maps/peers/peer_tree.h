// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// For peer tests: the parameter tree that another program made of a published checkpoint, held
// against what this library makes of the same checkpoint, in both directions, by name, type, shape
// and bytes.
//
//   const PeerRun run = RunPeer("tunix", {"refit/maps/peers/tunix_peer.py"}, {"qwen3"}).value();
//   const PeerCheckpoint published = PeerCheckpoint::Open(run.Published("qwen3")).value();
//   const WeightMap map = published.Build({"tunix"}).value();
//   const PeerTree theirs = ReadTree(run.Tree("qwen3")).value();
//   EXPECT_THAT(published.LoadDifferences(map, theirs), IsEmpty());
//   EXPECT_THAT(published.RefitDifferences(map, theirs), IsEmpty());

#ifndef WEIGHT_SYNC_REFIT_MAPS_PEERS_PEER_TREE_H_
#define WEIGHT_SYNC_REFIT_MAPS_PEERS_PEER_TREE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/maps/family.h"
#include "refit/maps/manifest.h"
#include "refit/maps/model_config.h"
#include "refit/maps/weight_map.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit::testing {

struct PeerTensor {
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;

  TensorView view() const { return TensorView::Contiguous(bytes.data(), dtype, shape); }
};

// By name.
using PeerTree = std::map<std::string, PeerTensor>;

// The tensors of a safetensors file, or of a directory that Checkpoint::Open takes.
absl::StatusOr<PeerTree> ReadTree(const std::string& path);

// For negative controls. Exchanges the bytes of two tensors; of two slices [a], [b] of the first axis
// of one. Dies where the tensors are not there or differ in shape, or the bytes are equal: nothing
// would be changed then.
void Exchange(PeerTree& tree, const std::string& a, const std::string& b);
void ExchangeSlices(PeerTensor& tensor, int64_t a, int64_t b);

// A line for each tensor that is not the same in both, with its name and how it differs.
std::vector<std::string> TreeDifferences(const PeerTree& theirs, const PeerTree& ours);

// The HF tensors that a refit by this map takes from the source checkpoint, not from the trainer.
std::vector<std::string> PassedThrough(const WeightMap& map);

// A published checkpoint, with a family of this library for its config.json.
class PeerCheckpoint {
 public:
  static absl::StatusOr<PeerCheckpoint> Open(const std::string& directory);

  // For the form in which the checkpoint is published, by its manifest; without one, in the form that
  // config.json alone gives.
  absl::StatusOr<WeightMap> Build(const LayoutOptions& layout) const;
  absl::StatusOr<WeightMap> BuildWithoutManifest(const LayoutOptions& layout) const;

  // How the trainer's arrays as this library loads them differ from the peer's. Axes that may be
  // padded are as long as the peer's; a tied head that the peer holds beside its embedding and this
  // library does not is left out here, and compared by RefitDifferences.
  std::vector<std::string> LoadDifferences(const WeightMap& map, const PeerTree& theirs) const;

  // How this library's refit of the peer's arrays differs from the checkpoint.
  std::vector<std::string> RefitDifferences(const WeightMap& map, const PeerTree& theirs) const;

  const PeerTree& tensors() const { return tensors_; }
  const ModelConfig& config() const { return config_; }

 private:
  PeerCheckpoint(const Family* family, ModelConfig config, Checkpoint checkpoint, Manifest manifest,
                 PeerTree tensors)
      : family_(family),
        config_(std::move(config)),
        checkpoint_(std::make_unique<Checkpoint>(std::move(checkpoint))),
        manifest_(std::move(manifest)),
        tensors_(std::move(tensors)) {}

  absl::StatusOr<PeerTree> Load(const WeightMap& map, const PeerTree& theirs) const;
  absl::StatusOr<PeerTree> Refit(const WeightMap& map, const PeerTree& theirs) const;

  const Family* family_;
  ModelConfig config_;
  std::unique_ptr<const Checkpoint> checkpoint_;
  Manifest manifest_;
  PeerTree tensors_;
};

// What a peer's program made of tiny checkpoints, each of several files with an index.
struct PeerRun {
  std::string published;  // a directory with one of every family
  std::string trees;      // what the program wrote

  std::string Published(const std::string& family) const { return published + "/" + family; }
  std::string Tree(const std::string& name) const { return trees + "/" + name; }
};

// Runs "python COMMAND... OUT DIRECTORY..." in the environment, with the directories of these
// families. NotFound without the environment, or the one that makes the checkpoints; Internal, with
// what the program printed, if it failed.
absl::StatusOr<PeerRun> RunPeer(const std::string& environment,
                                const std::vector<std::string>& command,
                                const std::vector<std::string>& families);

// The same with these directories, for a new directory OUT, which is returned.
absl::StatusOr<std::string> RunPeerOn(const std::string& environment,
                                      const std::vector<std::string>& command,
                                      const std::vector<std::string>& directories);

}  // namespace weight_sync::refit::testing

#endif  // WEIGHT_SYNC_REFIT_MAPS_PEERS_PEER_TREE_H_
