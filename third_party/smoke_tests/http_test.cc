// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "httplib.h"
#include "third_party/curl/curl.h"

namespace {

size_t Append(char* data, size_t size, size_t count, void* to) {
  static_cast<std::string*>(to)->append(data, size * count);
  return size * count;
}

TEST(HttpTest, CurlGetsWhatHttplibServes) {
  httplib::Server server;
  server.Get("/health", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("ready", "text/plain");
  });
  const int port = server.bind_to_any_port("127.0.0.1");
  ASSERT_GT(port, 0);
  std::thread serving([&] { server.listen_after_bind(); });
  server.wait_until_ready();

  ASSERT_EQ(curl_global_init(CURL_GLOBAL_DEFAULT), CURLE_OK);
  CURL* curl = curl_easy_init();
  ASSERT_NE(curl, nullptr);
  const std::string url = "http://127.0.0.1:" + std::to_string(port) + "/health";
  std::string body;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Append);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  EXPECT_EQ(curl_easy_perform(curl), CURLE_OK);
  EXPECT_EQ(body, "ready");
  curl_easy_cleanup(curl);
  curl_global_cleanup();

  server.stop();
  serving.join();
}

TEST(HttpTest, CurlHasTls) {
  EXPECT_TRUE(curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_SSL);
}

}  // namespace
