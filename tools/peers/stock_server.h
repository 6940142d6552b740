// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A stock inference server, which nobody here wrote, as a child of a test: vLLM or SGLang on this
// machine's CPU, with a tiny checkpoint (//tools/peers:tiny_checkpoint), on a free port of loopback.
//
//   auto environment = FindPeerEnvironment("vllm");
//   if (!environment.ok()) GTEST_SKIP() << environment.status();
//   auto started = StockServer::Start(VllmCommand(*environment, checkpoint));
//   ASSERT_THAT(started, IsOk());
//   StockServer& server = **started;
//   auto tokens = server.Generate({5, 6, 7}, 12);        // greedy
//   auto info = server.Get("/weight_info");              // any route: parsed JSON
//   EXPECT_THAT(server.Stop(), IsOk());
//
// Start waits until /health answers 200; a server that dies meanwhile ends the wait at once, and the
// error holds the end of its log. Every server stops with the object, and also when the test is
// killed (supervise.cc): no process, shared memory, socket or file of it is left. Not thread-safe but
// for the HTTP methods, which may be called from several threads.
//
// Errors: Unavailable (the server died, or nobody listens), DeadlineExceeded, and for an answer other
// than 200 Internal, with route, status and body.

#ifndef WEIGHT_SYNC_TOOLS_PEERS_STOCK_SERVER_H_
#define WEIGHT_SYNC_TOOLS_PEERS_STOCK_SERVER_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/unique_fd.h"
#include "nlohmann/json.hpp"

namespace weight_sync::peers {

// What to start. The functions below fill it; a test may add arguments and variables.
struct ServerCommand {
  enum class Engine { kVllm, kSglang };
  Engine engine = Engine::kVllm;
  std::vector<std::string> words;        // program and arguments; "{port}" becomes the port
  std::vector<std::string> environment;  // "NAME=value": all that the server gets but HOME, TMPDIR
  // A busy two-core machine took 3 minutes for what takes half a minute on an idle one.
  absl::Duration start_timeout = absl::Minutes(5);
  absl::Duration stop_timeout = absl::Seconds(30);
};

// `checkpoint` is a directory. The weight-transfer routes of vLLM exist, with its engine "nccl";
// another --weight-transfer-config added to `words` takes its place.
ServerCommand VllmCommand(const std::string& environment, const std::string& checkpoint);
ServerCommand SglangCommand(const std::string& environment, const std::string& checkpoint);

class StockServer {
 public:
  static absl::StatusOr<std::unique_ptr<StockServer>> Start(const ServerCommand& command);

  StockServer(const StockServer&) = delete;
  StockServer& operator=(const StockServer&) = delete;
  ~StockServer() { Stop().IgnoreError(); }

  int port() const { return port_; }
  // The supervising process, whose descendants the server's processes are.
  pid_t pid() const { return pid_; }
  const std::string& directory() const { return directory_; }  // its HOME and TMPDIR
  std::string Log() const;

  struct Answer {
    int status;
    std::string body;
  };
  // The answer of any status. `timeout` is for each wait, for the connection and for bytes.
  absl::StatusOr<Answer> Exchange(absl::string_view method, const std::string& path,
                                  const std::string& body,
                                  absl::Duration timeout = absl::Minutes(2)) const;

  // The JSON of an answer with status 200; null where its body is empty.
  absl::StatusOr<nlohmann::json> Get(const std::string& path) const;
  absl::StatusOr<nlohmann::json> Post(const std::string& path, const nlohmann::json& body) const;

  // The `count` tokens that follow `prompt`, chosen greedily.
  absl::StatusOr<std::vector<int>> Generate(const std::vector<int>& prompt, int count) const;

  // Asks the server to end and waits until nothing of it is left. An error if it had ended before,
  // or did not end without a SIGKILL. Again: OK.
  absl::Status Stop();

 private:
  StockServer() = default;
  absl::Status AwaitHealth(const base::Deadline& deadline);
  absl::StatusOr<nlohmann::json> Parsed(const std::string& path,
                                        const absl::StatusOr<Answer>& answer) const;
  absl::Status Launch(const ServerCommand& command);
  // Waits for the supervisor's end; its exit status and its words.
  int Reap(std::string* words);
  absl::Status DiedError();

  ServerCommand::Engine engine_ = ServerCommand::Engine::kVllm;
  std::string name_;
  int port_ = 0;
  pid_t pid_ = -1;         // -1: reaped
  base::UniqueFd input_;   // a byte asks for the end
  base::UniqueFd output_;  // ends with the supervisor
  std::string directory_;
  std::string log_;
};

}  // namespace weight_sync::peers

#endif  // WEIGHT_SYNC_TOOLS_PEERS_STOCK_SERVER_H_
