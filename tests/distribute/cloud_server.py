#!/usr/bin/env python3
"""A stand-in for the cloud's metadata service and for the TPU API, for the tests of src/distribute.

usage: cloud_server.py LOG [MODE]    prints its port, serves until killed

MODE  vm (default)   a machine that is no TPU's;  tpu  one that is part of TPU v5litepod-8
      nozone         a machine whose zone nobody knows
      portal         answers everything, without the header of a metadata service
      silent         accepts, and never answers

Nodes of project p1 in us-central1-b: idle (10.9.9.9), here (this machine, 10.0.0.7), four (hosts),
creating, preempted, broken (no JSON), odd (an endpoint that is none), v1 (the old form); secret is
forbidden. LOG gets a line for each question: its path, and how it was authorized."""
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

log = sys.argv[1]
mode = sys.argv[2] if len(sys.argv) > 2 else "vm"


def node(state, *workers, kind="v3-8"):
    ends = [{"ipAddress": ip, "port": 8470, "accessConfig": {}} for ip in workers]
    return {"name": "projects/p1/locations/us-central1-b/nodes/x", "acceleratorType": kind,
            "state": state, "health": "HEALTHY", "networkEndpoints": ends}


NODES = {
    "idle": node("READY", "10.9.9.9"),
    "here": node("READY", "10.0.0.7", kind="v5litepod-8"),
    "four": node("READY", "10.0.0.7", "10.0.0.8", "10.0.0.9", "10.0.0.10", kind="v5litepod-16"),
    "creating": node("CREATING"),
    "preempted": node("PREEMPTED"),
    "empty": node("READY"),
    "odd": node("READY", "10.0.0.7/evil"),
    "v1": {"state": "READY", "ipAddress": "10.4.4.4", "port": "8471", "acceleratorType": "v2-8"},
}
METADATA = {
    "project/project-id": "p1",
    "instance/zone": "projects/123/zones/us-central1-b",
    "instance/network-interfaces/0/ip": "10.0.0.7\n",
    "instance/service-accounts/default/token": '{"access_token":"ya29.tok_en","expires_in":9}',
}
if mode == "nozone":
    del METADATA["instance/zone"]
if mode == "tpu":
    METADATA["instance/attributes/accelerator-type"] = "v5litepod-8"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def send(self, code, text, headers=()):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def metadata(self, path):
        if self.headers.get("Metadata-Flavor") != "Google":
            return self.send(403, "say who you are")
        text = METADATA.get(path)
        header = [("Metadata-Flavor", "Google")]
        return self.send(404, "", header) if text is None else self.send(200, text, header)

    def node(self, path):
        parts = path.split("/")
        name = parts[-1]
        if self.headers.get("Authorization") != "Bearer ya29.tok_en":
            return self.send(401, '{"error":{"message":"who are you?"}}')
        if name == "secret":
            return self.send(403, '{"error":{"code":403,"message":"not for you"}}')
        if name == "broken":
            return self.send(200, '{"state":')
        if parts[:-1] != ["p1", "locations", "us-central1-b", "nodes"] or name not in NODES:
            return self.send(404, '{"error":{"message":"Resource not found"}}')
        return self.send(200, json.dumps(NODES[name]))

    def do_GET(self):
        with open(log, "a") as out:
            print(self.path, self.headers.get("Authorization", "-"), file=out)
        if mode == "silent":
            time.sleep(60)
        elif mode == "portal":
            self.send(200, "welcome to our hotel")
        elif self.path.startswith("/computeMetadata/v1/"):
            self.metadata(self.path[len("/computeMetadata/v1/"):])
        elif self.path.startswith("/v2/projects/"):
            self.node(self.path[len("/v2/projects/"):])
        else:
            self.send(404, "")


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
