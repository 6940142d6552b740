// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rank 0's end: it compares every other rank's calls with its own, answers them, reads the
// messages, and tells all ranks what one of them has run into.

#ifndef WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_ROOT_H_
#define WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_ROOT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/sharding/communicators/payload_stream.h"
#include "refit/sharding/communicators/round_communicator.h"
#include "refit/sharding/communicators/slots.h"

namespace weight_sync::refit {

class Root : public RoundCommunicator {
 public:
  // The connections of ranks 1, 2, ... Messages lie in `segments`, or come over the
  // connections' payloads where that is null.
  Root(std::vector<RankConnection> members, std::shared_ptr<Segments> segments);
  ~Root() override;

 protected:
  absl::Status DoBegin(const Call& call, const base::CancelScope& scope) override;
  absl::Status DoGather(const Call& call, absl::Span<const int64_t> sizes, Write write, Read read,
                        const base::CancelScope& scope) override;
  absl::StatusOr<int64_t> DoBroadcast(const Call& call, int64_t value,
                                      const base::CancelScope& scope) override;
  absl::Status DoEnd(const Call& call, const base::CancelScope& scope) override;
  void Tell(const Frame& status) override;
  void FlushNow() override;

 private:
  // Another rank, as rank 0 sees it.
  struct Peer {
    int rank;
    RankConnection connection;
    std::optional<SlotReader> slots;
    std::optional<PayloadReceiver> payload;
    // Its calls that were received and not yet met by a call here: a failure behind them is seen at
    // once.
    std::deque<Frame> calls;
    // The tags of the broadcasts here that it has not yet met.
    std::deque<int64_t> broadcasts;
    bool readable = false;  // poll(2) says
    bool awaits = false;    // a payload
    bool arrived = false;   // in this call
    bool ended = false;     // nothing of it matters but its last error
  };

  // What a Gather adds to a call.
  struct Messages {
    absl::Span<const int64_t> sizes;
    Read read;
  };

  // Until all ranks have made `call`.
  absl::Status Meet(const Call& call, const Messages* messages, const base::CancelScope& scope);
  // Answers `call` on all ranks, and waits until that is sent. Reads nothing: the answered may be
  // in the next call.
  absl::Status Answer(const Call& call, int64_t value, const base::CancelScope& scope);

  // Receives calls.
  absl::Status Receive(Peer& peer);
  absl::Status Map(Peer& peer, const Frame& segment);
  // What is no call of this round.
  absl::Status ReceiveOther(Peer& peer, const Frame& frame);
  // Nothing more will come: looks for the reason in what is left, and ends the round.
  absl::Status Ended(Peer& peer, const absl::Status& why);
  // Compares the received calls with those made here, and reads a message that is due.
  absl::Status Match(Peer& peer, const Call& call, const Messages* messages);
  // Calls `read` when all of the message is here; false until then.
  absl::StatusOr<bool> ReadMessage(Peer& peer, int64_t bytes, Read read);
  // Of a round that has failed: one call, or all that were received.
  void Drop(Peer& peer, const Frame& call);
  void DropReceived(Peer& peer);

  absl::Status LosePeer(Peer& peer, const absl::Status& why);
  std::string Missing() const;
  void TellTheArrived(const std::string& missing);

  const std::shared_ptr<Segments> segments_;
  std::vector<Peer> peers_;
  Call call_{FrameKind::kBegin};  // the present one, or the last
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_ROOT_H_
