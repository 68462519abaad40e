"""Chooses slips and builds the mutated copy.

    build/mutants/check/    a copy of the sources in which each file's slips are tried by the compiler
    build/mutants/tree/     the copy that is built, slips behind their switches
    build/mutants/*.json    what is known: numbers of slips, what compiles, traces, results
"""
import collections
import concurrent.futures
import hashlib
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys

import source

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(ROOT, "build", "mutants")
TREE, CHECK = os.path.join(WORK, "tree"), os.path.join(WORK, "check")
BUILD = os.path.join(TREE, "build", "release")  # where programs look for headers two levels up
MAX_NUMBERS = 1 << 14  # SX_MUTANTS_MAX of switch.h


def load(name):
    try:
        with open(os.path.join(WORK, name)) as f:
            return json.load(f)
    except FileNotFoundError:
        return {}


def save(name, value):
    path = os.path.join(WORK, name)
    with open(path + ".new", "w") as f:
        json.dump(value, f, indent=0)
    os.replace(path + ".new", path)


def write_if_changed(path, text):
    try:
        with open(path, "rb") as f:
            if f.read() == text:
                return False
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(text)
    return True


def copy_mode(path):
    """Scripts of the tree are run: they keep their mode."""
    mode = os.stat(os.path.join(ROOT, path)).st_mode & 0o777
    if mode & 0o111:
        os.chmod(os.path.join(TREE, path), mode)


def layer_of(path):
    """"src/io/commit.c" -> "io"; "cli/option.c" -> "cli"."""
    parts = path.split("/")
    return parts[1] if parts[0] == "src" else parts[0]


def read_sources():
    """Files of the checkout: path -> bytes."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                           check=True, capture_output=True, text=True).stdout.split("\0")
    files = {}
    for name in names:
        path = os.path.join(ROOT, name)
        if name and os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as f:
                files[name] = f.read()
    return files


def all_slips(files):
    """Path -> slips, for what is mutated: src/ and cli/."""
    code = {p: b.decode() for p, b in files.items() if p.endswith((".c", ".h", ".inc"))}
    type_names = source.type_names_of(t for p, t in code.items() if not p.startswith("tests/"))
    # Powers of ten made by a tool: one wrong digit in a table of hundreds says nothing of the tests.
    return {p: source.candidates(p, t, type_names) for p, t in sorted(code.items())
            if re.match(r"(src|cli)/", p) and p != "src/base/pow10.c"}


def order(slips, seed):
    """The slips in the order in which this seed draws them. An edit elsewhere in the sources moves
    none of them, so that results stay good."""
    of_kind = collections.Counter(s.kind for s in slips)

    def key(slip):
        digest = hashlib.sha256(f"{seed}|{slip.id}".encode()).digest()
        uniform = (int.from_bytes(digest[:8], "big") + 1) / (2 ** 64 + 1)
        return -math.log(uniform) * of_kind[slip.kind] / slip.weight

    return sorted(slips, key=key)


def quotas(files, layers, count):
    """Layer -> slips, by lines of code, three at least."""
    lines = {l: sum(files[p].count(b"\n") for p in paths) for l, paths in layers.items()}
    total = sum(lines.values())
    return {l: max(3, round(count * n / total)) for l, n in lines.items()}


class Checker:
    """Tries slips with the compiler: on, they must compile; off, the file must compile to the code
    of the original."""

    def __init__(self, files, jobs):
        self.files, self.jobs = files, jobs
        self.known = load("compiles.json")
        with open(os.path.join(BUILD, "compile_commands.json")) as f:
            self.commands = {os.path.relpath(e["file"], TREE): e for e in json.load(f)
                             if e["file"].startswith(TREE + "/")}
        self.originals = {}
        self.includers = self.find_includers()

    def find_includers(self):
        """Header -> [a .c file that includes it, directly or not]; .inc -> all of them: each may
        compile other lines of it."""
        direct = collections.defaultdict(set)
        for path, data in self.files.items():
            if path.startswith(("src/", "cli/")):
                for name in re.findall(rb'^#include "([^"]+)"', data, re.M):
                    name = name.decode()
                    for full in ("src/" + name, os.path.join(os.path.dirname(path), name)):
                        if full in self.files:
                            direct[full].add(path)
        found = collections.defaultdict(list)
        for path in list(direct):
            queue, seen = [path], {path}
            while queue and (path.endswith(".inc") or not found[path]):
                at = queue.pop(0)
                if at.endswith(".c") and at in self.commands:
                    found[path].append(at)
                for next_ in sorted(direct.get(at, ())):
                    if next_ not in seen:
                        seen.add(next_)
                        queue.append(next_)
        return found

    def key(self, path, slip):
        # A slip's text reaches no further than its file; what it includes matters seldom.
        return slip.id + hashlib.sha256(self.files[path]).hexdigest()[:12]

    def compile(self, unit, directory, *options):
        entry = self.commands[unit]
        words = shlex.split(entry["command"])
        if "ccache" in words[0]:
            words = words[1:]
        drop = {"-c", entry["file"]}
        out, i = [], 0
        while i < len(words):
            if words[i] == "-o":
                i += 2
                continue
            if words[i] not in drop:
                out.append(words[i] if BUILD in words[i] else words[i].replace(TREE + "/", directory + "/"))
            i += 1
        out += ["-w", "-Werror=int-conversion", "-Werror=incompatible-pointer-types",
                "-Werror=return-type", f"-fmacro-prefix-map={directory}/=", *options,
                os.path.join(directory, unit)]
        return subprocess.run(out, cwd=entry["directory"], capture_output=True, text=True)

    def original(self, unit):
        if unit not in self.originals:
            done = self.compile(unit, CHECK, "-O0", "-g0", "-S", "-o", "-", "-DSX_MUTANTS_OFF")
            if done.returncode != 0:
                sys.exit(f"mutants: {unit} does not compile:\n{done.stderr}")
            self.originals[unit] = done.stdout
        return self.originals[unit]

    def compiles(self, path, slips):
        units = [path] if path.endswith(".c") else self.includers.get(path, [])
        if not units or any(unit not in self.commands for unit in units):
            return False
        target = os.path.join(CHECK, path)
        expected = [self.original(unit) for unit in units]
        text = source.switched(self.files[path].decode(), slips)
        write_if_changed(target, text.encode())
        try:
            for unit, code in zip(units, expected):
                done = self.compile(unit, CHECK, "-fsyntax-only")
                if done.returncode != 0:
                    return False
                off = self.compile(unit, CHECK, "-O0", "-g0", "-S", "-o", "-", "-DSX_MUTANTS_OFF")
                if off.returncode != 0 or off.stdout != code:
                    return False
            return True
        finally:
            write_if_changed(target, self.files[path])

    def good(self, path, slips):
        """Those of a file's (number, slip) that compile, alone and together."""
        unknown = [s for s in slips if self.key(path, s[1]) not in self.known]
        if unknown:
            if self.compiles(path, unknown):
                for _, slip in unknown:
                    self.known[self.key(path, slip)] = True
            else:
                for one in unknown:
                    self.known[self.key(path, one[1])] = \
                        self.compiles(path, [one]) if len(unknown) > 1 else False
        return [s for s in slips if self.known[self.key(path, s[1])]]


def numbers_for(slips):
    """Numbers that a slip keeps from run to run, so that files need no second compile."""
    numbers = load("numbers.json")
    if len(numbers) + len(slips) >= MAX_NUMBERS:
        numbers = {}
    for slip in slips:
        numbers.setdefault(slip.id, len(numbers) + 1)
    save("numbers.json", numbers)
    return numbers


def configure(files):
    """Brings the copies up to date, still without slips where a file is new."""
    for path, data in files.items():
        write_if_changed(os.path.join(CHECK, path), data)
        if not os.path.exists(os.path.join(TREE, path)):
            write_if_changed(os.path.join(TREE, path), data)
            copy_mode(path)
    for top in (TREE, CHECK):
        for directory, below, names in os.walk(top):
            if directory == TREE:
                below[:] = [d for d in below if d != "build"]
            for name in names:
                path = os.path.relpath(os.path.join(directory, name), top)
                if path not in files and path != "src/base/sx_mutant_switch.c":
                    os.unlink(os.path.join(directory, name))
    for name in ("switch.h", "switch.c"):
        with open(os.path.join(HERE, name), "rb") as f:
            data = f.read()
        if name == "switch.c":
            write_if_changed(os.path.join(TREE, "src/base/sx_mutant_switch.c"), data)
        else:
            write_if_changed(os.path.join(WORK, name), data)
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        flags = f"-w -include {os.path.join(WORK, 'switch.h')}"
        done = subprocess.run(
            ["cmake", "-G", "Ninja", "-S", TREE, "-B", BUILD, "-DCMAKE_C_COMPILER=gcc",
             "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2",
             f"-DCMAKE_C_FLAGS={flags}"], capture_output=True, text=True)
        if done.returncode != 0:
            shutil.rmtree(BUILD, ignore_errors=True)
            sys.exit(done.stdout + done.stderr)
    # The headers that protoc-c makes.
    ninja(["sextant_protobuf"])


def ninja(targets):
    done = subprocess.run(["ninja", "-C", BUILD, *targets], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout[-8000:] + done.stderr)


def choose(files, seed, count, only, jobs, say):
    """The slips of this seed, [(number, slip)], all of them compiling."""
    slips = all_slips(files)
    layers = collections.defaultdict(list)
    for path in slips:
        if only is None or re.search(only, path):
            layers[layer_of(path)].append(path)
    checker = Checker(files, jobs)
    wanted = quotas(files, layers, count)
    queues = {l: order([s for p in paths for s in slips[p]], seed) for l, paths in layers.items()}
    share = {l: sum(files[p].count(b"\n") for p in paths) for l, paths in layers.items()}
    chosen, taken = {l: [] for l in layers}, collections.defaultdict(list)
    while True:
        drawn = []
        for layer, queue in queues.items():
            need = wanted[layer] - len(chosen[layer])
            while need > 0 and queue:
                slip = queue.pop(0)
                # Spread over the files, too, and no two in one place.
                lines = files[slip.path].count(b"\n")
                cap = math.ceil(1.5 * wanted[layer] * lines / share[layer])
                start, end = source.span(slip)
                if len(taken[slip.path]) < cap and not any(
                        start < e and s < end or abs(slip.line - line) < 1
                        for s, e, line in taken[slip.path]):
                    taken[slip.path].append((start, end, slip.line))
                    drawn.append(slip)
                    need -= 1
        if not drawn:
            break
        numbers = numbers_for(drawn)
        by_path = collections.defaultdict(list)
        for slip in drawn:
            by_path[slip.path].append((numbers[slip.id], slip))
        # A header's trial would disturb those of the files that include it.
        groups = [[p for p in by_path if not p.endswith(".c")], [p for p in by_path if p.endswith(".c")]]
        for paths, width in zip(groups, (1, jobs)):
            with concurrent.futures.ThreadPoolExecutor(width) as pool:
                for path, good in zip(paths, pool.map(lambda p: checker.good(p, by_path[p]), paths)):
                    for number, slip in good:
                        chosen[layer_of(path)].append((number, slip))
        save("compiles.json", checker.known)
        say(f"chosen {sum(map(len, chosen.values()))} of {sum(wanted.values())} slips")
    return [s for layer in sorted(chosen) for s in sorted(chosen[layer], key=lambda s: (s[1].path, s[1].line))]


def build(files, chosen):
    """Writes the mutated tree and builds it. Returns a hash of what was built."""
    by_path = collections.defaultdict(list)
    for number, slip in chosen:
        by_path[slip.path].append((number, slip))
    digest = hashlib.sha256()
    for path, data in sorted(files.items()):
        if path in by_path:
            data = source.switched(data.decode(), by_path[path]).encode()
        write_if_changed(os.path.join(TREE, path), data)
        if path.startswith(("src/", "cli/", "include/")):
            digest.update(path.encode() + b"\0" + data)
    ninja([])
    return digest.hexdigest()[:16]
