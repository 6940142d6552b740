// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "zmq.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace {

TEST(ZmqTest, RequestAndReplyOverIpc) {
  // A socket's path may have 107 bytes; the sandbox's test folder alone may have more.
  ASSERT_EQ(chdir(std::getenv("TEST_TMPDIR")), 0);
  zmq::context_t context;
  zmq::socket_t reply(context, zmq::socket_type::rep);
  reply.bind("ipc://socket");
  std::thread echo([&] {
    zmq::message_t message;
    ASSERT_TRUE(reply.recv(message));
    ASSERT_TRUE(reply.send(message, zmq::send_flags::none));
  });
  zmq::socket_t request(context, zmq::socket_type::req);
  request.connect("ipc://socket");
  ASSERT_TRUE(request.send(zmq::buffer(std::string("hello")), zmq::send_flags::none));
  zmq::message_t message;
  ASSERT_TRUE(request.recv(message));
  EXPECT_EQ(message.to_string(), "hello");
  echo.join();
}

}  // namespace
