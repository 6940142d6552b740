# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""A server of a few lines that behaves as it is told, for stock_server_test.

    small_server.py PORT [stubborn] [forgetful] [starting] [dies]

It maps a segment of shared memory, makes a named semaphore, starts a process in a session of its own, and serves:
  /health         200 from the second question on
  /json /text     an answer that is JSON, and one that is not
  /v1/completions as many tokens as are asked for, counting up from the prompt's last
  /environment    its variables, its folder
  /exit           it ends with status 7

On SIGTERM it ends its child and itself. stubborn: both ignore SIGTERM. forgetful: its child stays.
starting: it never is healthy. dies: it ends at once.
"""

import http.server
import json
import mmap
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile

port, kinds = int(sys.argv[1]), sys.argv[2:]
if "dies" in kinds:
    sys.exit("no such model")
if "stubborn" in kinds:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which children inherit
segment, path = tempfile.mkstemp(prefix="small_server.", dir="/dev/shm")
os.ftruncate(segment, 4096)
mapped = mmap.mmap(segment, 4096)
semaphore = multiprocessing.get_context("spawn").Semaphore()
semaphore_path = "/dev/shm/sem." + semaphore._semlock.name.lstrip("/")
child = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
questions = 0


def end(*_):
    if "forgetful" not in kinds:
        child.kill()
    os._exit(0)


if "stubborn" not in kinds:
    signal.signal(signal.SIGTERM, end)


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self):
        global questions
        if self.path == "/health":
            questions += 1
            self.answer(200 if questions > 1 and "starting" not in kinds else 503, "")
        elif self.path == "/json":
            made = {"pid": os.getpid(), "child": child.pid, "files": [path, semaphore_path]}
            self.answer(200, json.dumps(made))
        elif self.path == "/text":
            self.answer(200, "words")
        elif self.path == "/environment":
            self.answer(200, json.dumps({"variables": dict(os.environ), "folder": os.getcwd()}))
        elif self.path == "/exit":
            os._exit(7)
        else:
            self.answer(404, "no such route")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        first = body["prompt"][-1] + 1
        tokens = list(range(first, first + min(body["max_tokens"], 5)))
        self.answer(200, json.dumps({"choices": [{"token_ids": tokens}]}))


http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
