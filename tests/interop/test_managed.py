"""Managed prediction by Google's own API client, which makes its methods of the server's discovery document."""
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

SRC, SEXTANT = Path(os.environ["SEXTANT_SRC"]), os.environ["SEXTANT_BIN"]
found = subprocess.run([SRC / "tools/peers", "google"], capture_output=True, text=True)
if found.returncode != 0:
    print("SKIP: google-api-python-client could not be installed")
    sys.exit(77)
sys.path[:0] = glob.glob(str(Path(found.stdout.strip()).parent.parent / "lib/python3*/site-packages"))

from googleapiclient import discovery, errors
import httplib2

ZEROS = [[[0.0]] * 28] * 28
ADMIN, USER, READER = "admin-key", "user-key", "reader-key"


def start(*args):
    process = subprocess.Popen([SEXTANT, "serve", "--port=0", "--rest_api_port=0", "--managed_models_dir=managed",
                                f"--managed_storage={os.getcwd()}/exports", *args], stdout=subprocess.PIPE, text=True)
    port = None
    for line in process.stdout:
        if line.startswith("Listening on port"):
            port = int(line.split()[-1])
        if line.startswith("Serving"):
            return process, port
    raise AssertionError("the server ended")


def stop(process):
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0


def client(port, key=None):
    http = httplib2.Http(timeout=30)
    if key:
        plain = http.request
        http.request = lambda uri, method="GET", body=None, headers=None, **more: plain(
            uri, method, body, {**(headers or {}), "Authorization": f"Bearer {key}"}, **more)
    return discovery.build("ml", "v1", http=http, static_discovery=False, cache_discovery=False,
                           discoveryServiceUrl=f"http://127.0.0.1:{port}/discovery/v1/apis/{{api}}/{{apiVersion}}/rest")


def fails(code, part, request):
    try:
        request.execute()
    except errors.HttpError as error:
        assert error.resp.status == code and part in str(error), error
        return
    raise AssertionError(f"no error {code}")


def create_version(ml, model, name, path):
    operation = ml.projects().models().versions().create(
        parent=f"projects/p/models/{model}", body={"name": name, "deploymentUri": path}).execute()
    deadline = time.monotonic() + 30
    while not operation.get("done"):
        assert time.monotonic() < deadline, operation
        time.sleep(0.05)
        operation = ml.projects().operations().get(name=operation["name"]).execute()
    return operation


def check_models(ml, exports):
    models, versions = ml.projects().models(), ml.projects().models().versions()
    assert models.list(parent="projects/p").execute() == {"models": []}
    assert models.create(parent="projects/p", body={"name": "digits"}).execute() == {"name": "projects/p/models/digits"}
    fails(409, "model digits exists already", models.create(parent="projects/p", body={"name": "digits"}))
    fails(400, "expected letters, digits and _", models.create(parent="projects/p", body={"name": "../x"}))
    fails(404, "Could not find model none", models.get(name="projects/p/models/none"))
    fails(400, "expected v and a number", versions.create(parent="projects/p/models/digits",
                                                        body={"name": "new", "deploymentUri": f"{exports}/1"}))
    for path in ("/etc", "/none", f"{exports}/../exports/../../etc", f"file://{exports}/../run"):
        fails(403, "is not in the storage", versions.create(parent="projects/p/models/digits",
                                                          body={"name": "v1", "deploymentUri": path}))
    fails(404, "has no saved_model.pb", versions.create(parent="projects/p/models/digits",
                                                      body={"name": "v1", "deploymentUri": exports}))
    assert create_version(ml, "digits", "v1", f"{exports}/1")["response"] == {
        "name": "projects/p/models/digits/versions/v1", "state": "READY", "framework": "TENSORFLOW", "isDefault": True}
    create_version(ml, "digits", "v2", f"file://{exports}/2")
    fails(409, "version v2 of model digits exists already",
          versions.create(parent="projects/p/models/digits", body={"name": "v2", "deploymentUri": f"{exports}/2"}))
    failed = create_version(ml, "digits", "v3", f"{exports}/bad")
    assert failed["error"]["code"] > 0 and "response" not in failed, failed
    listed = versions.list(parent="projects/p/models/digits").execute()["versions"]
    assert [(v["name"].rsplit("/", 1)[1], v["state"], v["isDefault"]) for v in listed] == [
        ("v3", "FAILED", False), ("v2", "READY", False), ("v1", "READY", True)], listed
    assert versions.setDefault(name="projects/p/models/digits/versions/v2", body={}).execute()["isDefault"]
    assert models.get(name="projects/p/models/digits").execute()["defaultVersion"]["name"].endswith("/v2")
    fails(400, "is the default of model digits", versions.delete(name="projects/p/models/digits/versions/v2"))
    assert versions.delete(name="projects/p/models/digits/versions/v3").execute()["done"]
    fails(400, "model digits has versions", models.delete(name="projects/p/models/digits"))


def check_predict(ml):
    predict = ml.projects().predict
    body = {"signature_name": "tensors", "instances": [ZEROS, ZEROS]}
    answer = predict(name="projects/p/models/digits", body=body).execute()
    assert "error" not in answer and len(answer["predictions"]) == 2
    assert sorted(answer["predictions"][0]) == ["class", "classid", "probabilities"]
    for version in ("v1", "v2"):
        assert predict(name=f"projects/p/models/digits/versions/{version}", body=body).execute() == answer
    for bad in ({"instances": "x"}, {"inputs": [ZEROS], "signature_name": "tensors"}, {"signature_name": "none", "instances": [1]}):
        answer = predict(name="projects/p/models/digits", body=bad).execute()
        assert list(answer) == ["error"] and answer["error"].startswith("Prediction failed: "), answer
    fails(404, "Servable not found", predict(name="projects/p/models/none", body=body))
    fails(404, "Servable not found", predict(name="projects/p/models/digits/versions/v9", body=body))


def check_size(port):
    """Beyond 250 MB a body is refused, whatever the server's own limit is."""
    body = b'{"instances": [' + b" " * 250_000_000 + b"]}"
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/projects/p/models/digits:predict", data=body)
    try:
        urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        assert error.code == 413 and "more than 250 MB" in json.load(error)["error"]["message"]
        return
    raise AssertionError("250 MB were taken")


def check_roles(port):
    """Who may only predict, who may look, who may change."""
    body = {"signature_name": "tensors", "instances": [ZEROS]}
    for key, looks, changes in ((ADMIN, True, True), (READER, True, False), (USER, False, False)):
        ml = client(port, key)
        assert "predictions" in ml.projects().predict(name="projects/p/models/digits", body=body).execute()
        get = ml.projects().models().get(name="projects/p/models/digits")
        create = ml.projects().models().create(parent="projects/p", body={"name": "more"})
        get.execute() if looks else fails(403, "may not", get)
        create.execute() if changes else fails(403, "may not", create)
    ml.projects().models().list(parent="projects/p").execute()


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([SEXTANT, "train", "linear", "--data", "generated:digits?n=8", "--model-dir", "run", "--steps", "1"],
                       check=True, capture_output=True)
        for _ in range(2):
            subprocess.run([SEXTANT, "export", "run", "--out", "exports"], check=True, capture_output=True)
        os.mkdir("exports/bad")
        Path("exports/bad/saved_model.pb").write_bytes(b"no model")
        process, port = start("--max_body_bytes=1G", "--max_in_flight_memory_bytes=4G", "--max_request_memory_bytes=2G")
        try:
            ml = client(port)
            check_models(ml, f"{folder}/exports")
            check_predict(ml)
            check_size(port)
        finally:
            stop(process)
        # what was created is there again
        Path("keys").write_text(f"admin {ADMIN}\nuser {USER}\nreader {READER}\n")
        Path("rules").write_text("key:admin * @admin\nkey:user digits:predict\nkey:reader digits\n")
        process, port = start("--api_keys_file=keys", "--auth_rules_file=rules")
        try:
            check_roles(port)
        finally:
            stop(process)


main()
