// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The end of a rank other than 0: what it says to rank 0, and what it waits for from it.

#ifndef WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_MEMBER_H_
#define WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_MEMBER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/sharding/communicators/payload_stream.h"
#include "refit/sharding/communicators/round_communicator.h"
#include "refit/sharding/communicators/slots.h"

namespace weight_sync::refit {

class Member : public RoundCommunicator {
 public:
  // Messages lie in `segments`, or go over the connection's payload where that is null.
  Member(int rank, int size, RankConnection root, const std::shared_ptr<Segments>& segments);

 protected:
  absl::Status DoBegin(const Call& call, const base::CancelScope& scope) override;
  absl::Status DoGather(const Call& call, absl::Span<const int64_t> sizes, Write write, Read read,
                        const base::CancelScope& scope) override;
  absl::StatusOr<int64_t> DoBroadcast(const Call& call, int64_t value,
                                      const base::CancelScope& scope) override;
  absl::Status DoEnd(const Call& call, const base::CancelScope& scope) override;
  void Tell(const Frame& status) override { root_.socket->Send(status); }
  void FlushNow() override { root_.socket->Flush(); }

 private:
  // Says the call, and waits for rank 0's answer to it.
  absl::StatusOr<int64_t> Ask(const Call& call, const base::CancelScope& scope);
  // Reads what is here, up to the answer to `call`. An error of the round or of the connection.
  absl::Status ReadFrames(const Call& call);
  absl::Status ReadFrame(const Frame& frame, const Call& call);
  // Until done(), looking at what comes.
  template <typename Done>
  absl::Status WaitUntil(const Call& call, const base::CancelScope& scope, Done done);
  absl::Status LoseRoot(absl::Status why);

  std::optional<SlotWriter> slots_;
  std::optional<PayloadSender> payload_;
  MessageBuffer buffer_;           // of payload_
  RankConnection root_;            // ends before what it is about
  std::optional<int64_t> answer_;  // rank 0's, to the call that waits
  std::string rank_0_waits_for_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_MEMBER_H_
