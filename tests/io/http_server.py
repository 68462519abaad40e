#!/usr/bin/env python3
"""A web server of one file for tests/io/test_fetch.c: ranges, tags, and the ways servers fail.

usage: http_server.py FILE LOG    prints its port, serves until killed

/whole      no ranges: always all of it             /ranged     ranges, ETag, If-Range
/changing   ranges, an ETag that differs each time  /cut        ends the connection half-way
/moved      redirects to /ranged                    /elsewhere  redirects to a file:// address
/lying      206 from another offset than asked      /stalls     sends half, then nothing
/status/N   answers N                               /empty      no bytes"""
import itertools
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

path, log = sys.argv[1:3]
body = open(path, "rb").read()
counter = itertools.count()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, code, data, headers=(), claim=None):
        self.send_response(code)
        self.send_header("Content-Length", str(len(data) if claim is None else claim))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def ranged(self, tag, lie=0):
        asked = re.match(r"bytes=(\d+)-$", self.headers.get("Range", ""))
        headers = [("ETag", tag)]
        if not asked or self.headers.get("If-Range", tag) != tag:
            return self.send(200, body, headers)
        start = int(asked[1])
        if start >= len(body):
            return self.send(416, b"", [("Content-Range", f"bytes */{len(body)}")])
        start += lie
        headers.append(("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}"))
        self.send(206, body[start:], headers)

    def do_GET(self):
        with open(log, "a") as out:
            print(self.path, self.headers.get("Range", "-"), file=out)
        if self.path == "/whole":
            self.send(200, body)
        elif self.path == "/ranged":
            self.ranged('"v1"')
        elif self.path == "/changing":
            self.ranged(f'"v{next(counter)}"')
        elif self.path == "/lying":
            self.ranged('"v1"', lie=1)
        elif self.path == "/cut":
            self.send(200, body[:len(body) // 2], [("ETag", '"v1"')], claim=len(body))
            self.close_connection = True
        elif self.path == "/stalls":
            self.send(200, body[:len(body) // 2], [("ETag", '"v1"')], claim=len(body))
            time.sleep(60)
        elif self.path == "/moved":
            self.send(302, b"", [("Location", "/ranged")])
        elif self.path == "/elsewhere":
            self.send(302, b"", [("Location", f"file://{path}")])
        elif self.path == "/empty":
            self.send(200, b"")
        else:
            self.send(int(self.path.rsplit("/", 1)[1]), b"oops")


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
