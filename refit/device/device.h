// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Where bytes live and when they are there: Device, DeviceSpan, Stream, Event. Host memory is the
// only device so far, and a host Stream does its work before it returns, so its Events are complete
// from the start; code written against these types need not change when a GPU is behind them.
// Values without ownership; a Stream is used by one thread at a time.
//
//   Stream stream = Stream::Host();
//   DeviceSpan slot{memory, 1 << 20, Device::Host()};
//   WS_ASSIGN_OR_RETURN(Event filled, program.Fill(bucket, slot, stream));
//   WS_RETURN_IF_ERROR(filled.Wait(deadline));   // before another thread or process may look

#ifndef WEIGHT_SYNC_REFIT_DEVICE_DEVICE_H_
#define WEIGHT_SYNC_REFIT_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "base/deadline.h"

namespace weight_sync::refit {

enum class DeviceKind : uint8_t { kHost };

struct Device {
  DeviceKind kind = DeviceKind::kHost;
  int ordinal = 0;

  static Device Host() { return {}; }
  friend bool operator==(const Device& a, const Device& b) {
    return a.kind == b.kind && a.ordinal == b.ordinal;
  }
};

struct DeviceSpan {
  std::byte* data = nullptr;
  int64_t bytes = 0;
  Device device;
};

// Work that was put on a stream is done. Copyable.
class Event {
 public:
  static Event Complete() { return Event(); }

  bool done() const { return true; }
  absl::Status Wait(const base::Deadline&) const { return absl::OkStatus(); }

 private:
  Event() = default;
};

// An ordered queue of work on one device.
class Stream {
 public:
  static Stream Host() { return Stream(); }

  Device device() const { return Device::Host(); }

 private:
  Stream() = default;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_DEVICE_DEVICE_H_
