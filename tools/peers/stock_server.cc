// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/peers/stock_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/log/check.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "httplib.h"

namespace weight_sync::peers {
namespace {

constexpr char kSupervisor[] = "tools/peers/supervise";
// Between two questions whether a server is ready.
constexpr int kHealthPeriodMs = 500;
constexpr size_t kLogTail = 4000;

// A port of loopback that nobody listens on.
absl::StatusOr<int> FreePort() {
  const base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return absl::ErrnoToStatus(errno, "looking for a free port of 127.0.0.1");
  }
  return ntohs(address.sin_port);
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What both servers get: no look at the network, no compiler, the system's programs.
std::vector<std::string> CommonEnvironment() {
  return {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HF_HUB_OFFLINE=1", "TORCHDYNAMO_DISABLE=1"};
}

}  // namespace

ServerCommand VllmCommand(const std::string& environment, const std::string& checkpoint) {
  ServerCommand command;
  command.engine = ServerCommand::Engine::kVllm;
  command.words = {environment + "/bin/python", environment + "/bin/vllm", "serve", checkpoint};
  for (const char* word :
       {"--served-model-name", "tiny", "--host", "127.0.0.1", "--port", "{port}", "--dtype",
        "bfloat16", "--max-model-len", "128", "--enforce-eager", "--max-num-seqs", "4",
        "--weight-transfer-config", R"({"backend":"nccl"})"}) {
    command.words.push_back(word);
  }
  command.environment = CommonEnvironment();
  // The cache keeps what it learned of the model classes, in ten seconds of a start.
  for (const std::string& variable :
       {std::string("VLLM_SERVER_DEV_MODE=1"), std::string("VLLM_CPU_KVCACHE_SPACE=1"),
        std::string("VLLM_NO_USAGE_STATS=1"), "VLLM_CACHE_ROOT=" + environment + "/cache"}) {
    command.environment.push_back(variable);
  }
  return command;
}

ServerCommand SglangCommand(const std::string& environment, const std::string& checkpoint) {
  ServerCommand command;
  command.engine = ServerCommand::Engine::kSglang;
  command.words = {environment + "/bin/python", "-m", "sglang.launch_server", "--model-path",
                   checkpoint};
  for (const char* word :
       {"--host", "127.0.0.1", "--port", "{port}", "--device", "cpu", "--attention-backend",
        "torch_native", "--dtype", "bfloat16", "--mem-fraction-static", "0.2", "--max-total-tokens",
        "2048", "--disable-cuda-graph", "--disable-overlap-schedule"}) {
    command.words.push_back(word);
  }
  command.environment = CommonEnvironment();
  return command;
}

absl::StatusOr<std::unique_ptr<StockServer>> StockServer::Start(const ServerCommand& command) {
  std::unique_ptr<StockServer> server(new StockServer);
  const base::Deadline deadline = base::Deadline::After(command.start_timeout);
  WS_RETURN_IF_ERROR(server->Launch(command));
  WS_RETURN_IF_ERROR(server->AwaitHealth(deadline));
  return server;
}

absl::Status StockServer::Launch(const ServerCommand& command) {
  engine_ = command.engine;
  WS_ASSIGN_OR_RETURN(port_, FreePort());
  name_ = absl::StrCat(engine_ == ServerCommand::Engine::kVllm ? "vLLM" : "SGLang",
                       " at 127.0.0.1:", port_);
  // Short, as sockets lie in it.
  directory_ = "/tmp/weight_sync.XXXXXX";
  if (::mkdtemp(directory_.data()) == nullptr) return absl::ErrnoToStatus(errno, directory_);
  const char* temporary = ::getenv("TEST_TMPDIR");
  log_ = absl::StrCat(temporary != nullptr ? temporary : "/tmp", "/server-", port_, ".log");

  std::vector<std::string> words = {
      kSupervisor, directory_, log_,
      absl::StrCat(absl::ToInt64Seconds(absl::Ceil(command.stop_timeout, absl::Seconds(1))))};
  for (const std::string& word : command.words) {
    words.push_back(absl::StrReplaceAll(word, {{"{port}", absl::StrCat(port_)}}));
  }
  std::vector<std::string> environment = command.environment;
  int input[2], output[2];
  PCHECK(::pipe2(input, O_CLOEXEC) == 0 && ::pipe2(output, O_CLOEXEC) == 0);
  const base::UniqueFd theirs[] = {base::UniqueFd(input[0]), base::UniqueFd(output[1])};
  input_ = base::UniqueFd(input[1]);
  output_ = base::UniqueFd(output[0]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const absl::Cleanup destroy = [&actions] { posix_spawn_file_actions_destroy(&actions); };
  posix_spawn_file_actions_adddup2(&actions, theirs[0].get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, theirs[1].get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log_.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int error = ::posix_spawn(&pid_, kSupervisor, &actions, nullptr, Pointers(words).data(),
                                  Pointers(environment).data());
  if (error != 0) {
    pid_ = -1;
    ::rmdir(directory_.c_str());
    return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", kSupervisor));
  }
  return absl::OkStatus();
}

absl::Status StockServer::AwaitHealth(const base::Deadline& deadline) {
  for (;;) {
    pollfd wait{output_.get(), POLLIN, 0};
    if (::poll(&wait, 1, std::min(deadline.remaining_ms(), kHealthPeriodMs)) > 0) {
      return DiedError();
    }
    const auto answer = Exchange("GET", "/health", "", absl::Seconds(10));
    if (answer.ok() && answer->status == 200) return absl::OkStatus();
    if (deadline.expired()) {
      const absl::Status late = deadline.Exceeded(absl::StrCat("the start of ", name_));
      return absl::DeadlineExceededError(
          absl::StrCat(late.message(), "; the end of its log:\n", Log()));
    }
  }
}

std::string StockServer::Log() const {
  std::ifstream file(log_);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

int StockServer::Reap(std::string* words) {
  char buffer[256];
  ssize_t count;
  while ((count = ::read(output_.get(), buffer, sizeof(buffer))) != 0) {
    if (count > 0) words->append(buffer, static_cast<size_t>(count));
    if (count < 0 && errno != EINTR) break;
  }
  absl::StripAsciiWhitespace(words);
  int status = 0;
  PCHECK(::waitpid(std::exchange(pid_, -1), &status, 0) > 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

absl::Status StockServer::DiedError() {
  std::string words;
  Reap(&words);
  const std::string log = Log();
  return absl::UnavailableError(
      absl::StrCat(name_, " ended by itself (", words, "); the end of its log, ", log_, ":\n",
                   log.substr(log.size() - std::min(log.size(), kLogTail))));
}

absl::StatusOr<StockServer::Answer> StockServer::Exchange(absl::string_view method,
                                                          const std::string& path,
                                                          const std::string& body,
                                                          absl::Duration timeout) const {
  const base::Deadline deadline = base::Deadline::After(timeout);
  // A connection an exchange: the server may close one that it keeps alive at any time.
  httplib::Client client("127.0.0.1", port_);
  const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(timeout, absl::Seconds(1)));
  client.set_connection_timeout(seconds);
  client.set_read_timeout(seconds);
  const httplib::Result result =
      method == "GET" ? client.Get(path) : client.Post(path, body, "application/json");
  if (!result) {
    const std::string what =
        absl::StrCat(name_, ", ", method, " ", path, ": ", httplib::to_string(result.error()));
    return deadline.expired() ? deadline.Exceeded(what) : absl::UnavailableError(what);
  }
  return Answer{result->status, result->body};
}

absl::StatusOr<nlohmann::json> StockServer::Parsed(const std::string& path,
                                                   const absl::StatusOr<Answer>& answer) const {
  WS_RETURN_IF_ERROR(answer.status());
  if (answer->status != 200) {
    return absl::InternalError(
        absl::StrCat(name_, " answered ", path, " with ", answer->status, ": ", answer->body));
  }
  if (answer->body.empty()) return nlohmann::json();
  nlohmann::json json = nlohmann::json::parse(answer->body, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return absl::InternalError(
        absl::StrCat(name_, " answered ", path, " with what is no JSON: ", answer->body));
  }
  return json;
}

absl::StatusOr<nlohmann::json> StockServer::Get(const std::string& path) const {
  return Parsed(path, Exchange("GET", path, ""));
}

absl::StatusOr<nlohmann::json> StockServer::Post(const std::string& path,
                                                 const nlohmann::json& body) const {
  return Parsed(path, Exchange("POST", path, body.dump()));
}

absl::StatusOr<std::vector<int>> StockServer::Generate(const std::vector<int>& prompt,
                                                       int count) const {
  nlohmann::json tokens;
  if (engine_ == ServerCommand::Engine::kVllm) {
    WS_ASSIGN_OR_RETURN(const nlohmann::json answer,
                        Post("/v1/completions", {{"model", "tiny"},
                                                 {"prompt", prompt},
                                                 {"max_tokens", count},
                                                 {"temperature", 0},
                                                 {"ignore_eos", true},
                                                 {"return_token_ids", true}}));
    tokens = answer.value(nlohmann::json::json_pointer("/choices/0/token_ids"), nlohmann::json());
  } else {
    WS_ASSIGN_OR_RETURN(
        const nlohmann::json answer,
        Post("/generate",
             {{"input_ids", prompt},
              {"sampling_params",
               {{"temperature", 0}, {"max_new_tokens", count}, {"ignore_eos", true}}}}));
    tokens = answer.value("output_ids", nlohmann::json());
  }
  if (!tokens.is_array() || tokens.size() != static_cast<size_t>(count)) {
    return absl::InternalError(
        absl::StrCat(name_, " was asked for ", count, " tokens and generated: ", tokens.dump()));
  }
  return tokens.get<std::vector<int>>();
}

absl::Status StockServer::Stop() {
  if (pid_ < 0) return absl::OkStatus();
  pollfd wait{output_.get(), POLLIN, 0};
  if (::poll(&wait, 1, 0) > 0) return DiedError();
  ::signal(SIGPIPE, SIG_IGN);  // a supervisor that has just ended is an error of the write
  if (::write(input_.get(), ".", 1) != 1) return DiedError();
  std::string words;
  const int status = Reap(&words);
  if (status == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(name_, " did not end when it was asked to: ", words));
}

}  // namespace weight_sync::peers
