# SPDX-License-Identifier: MIT
"""`fornix serve` under test: started on a free port, its log read, its processes counted."""
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time

import mrd_wire as wire

FORNIX = os.environ["FORNIX"]


class Serve:
    """A server in a folder of its own; ends with the block, and must end well."""

    def __init__(self, folder, *options, env=None, ready=True):
        self.folder = str(folder)
        os.makedirs(self.folder, exist_ok=True)
        self.log_path = os.path.join(self.folder, "serve.log")
        self.audit_path = os.path.join(self.folder, "audit.jsonl")
        self.log_file = open(self.log_path, "wb")
        if os.path.exists(self.audit_path):
            os.remove(self.audit_path)
        environment = dict(os.environ, FORNIX_GADGET_PATH="")
        for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "JOURNAL_STREAM", "STATE_DIRECTORY", "CACHE_DIRECTORY"):
            environment.pop(name, None)
        environment.update(env or {})
        command = [FORNIX, "serve", "--port", "0", "--bind", "127.0.0.1", "--state", os.path.join(self.folder, "state"),
                   "--cache", os.path.join(self.folder, "cache"), "--audit", self.audit_path, "--threads", "1", *options]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log_file,
                                        env=environment)
        self.expected = 0
        if ready:
            found = self.await_log(r"ready on port (\d+)")
            self.port = int(found.group(1))

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def await_log(self, pattern, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.search(pattern, self.log())
            if found:
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"no {pattern!r} in the log:\n{self.log()[-3000:]}")

    def audit(self, n, seconds=30):
        """The audit's lines, once there are n."""
        end = time.monotonic() + seconds
        lines = []
        while time.monotonic() < end:
            if os.path.exists(self.audit_path):
                with open(self.audit_path, encoding="utf-8") as file:
                    lines = [json.loads(line) for line in file]
                if len(lines) >= n:
                    return lines
            time.sleep(0.02)
        raise AssertionError(f"{len(lines)} audit lines, {n} were expected:\n{self.log()[-3000:]}")

    def client(self, timeout=30):
        return wire.Client(self.port, timeout)

    def children(self):
        """Pids of the supervisor's children."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
            return [int(p) for p in file.read().split()]

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def connections(self):
        """Those that the server has not closed, the ones that it has not accepted yet among them."""
        with open("/proc/net/tcp", encoding="ascii") as file:
            parts = [line.split() for line in list(file)[1:]]
        return sum(int(p[1].split(":")[1], 16) == self.port and p[3] in ("01", "08") for p in parts)  # established, close-wait

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def resident_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))

    def worker_of(self, session_port):
        """The pid of the worker that holds the connection from that local port."""
        mine = set()
        with open("/proc/net/tcp", encoding="ascii") as file:
            for line in list(file)[1:]:
                part = line.split()
                if int(part[2].split(":")[1], 16) == session_port and int(part[1].split(":")[1], 16) == self.port:
                    mine.add(part[9])
        for pid in self.children():
            try:
                for name in os.listdir(f"/proc/{pid}/fd"):
                    link = os.readlink(f"/proc/{pid}/fd/{name}")
                    if link.startswith("socket:[") and link[8:-1] in mine:
                        return pid
            except OSError:
                pass
        return None

    def stop(self, seconds=30):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=seconds)
        self.log_file.close()
        for word in ("Sanitizer", "runtime error"):  # of a build with sanitizers
            assert word not in self.log(), self.log()
        return code

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            self.process.kill()
            self.process.wait()
            self.log_file.close()
            print("---- the server's log\n" + self.log()[-6000:])
            return
        code = self.stop()
        assert code == self.expected, f"the server ended with {code}:\n{self.log()[-3000:]}"


def await_true(what, test, seconds=10):
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.02)


def scan(client, messages, name="cartesian"):
    """A whole session: a configuration's name, then a stream that begins with its header. What came back."""
    client.send(wire.config_name(name), *messages)
    if messages[-1][0] != 4:
        client.send(wire.CLOSE)
    return client.rest()


def reset(client):
    """Goes away as a process that was killed with data unread does: the connection is reset."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()
