"""make mutants: does the suite see small slips?

A few hundred slips that a good programmer makes (a flipped comparison, a lost call, a wrong constant)
are compiled into one copy of the sources, each behind a switch. The tests run once to note which slips
each of them meets; then, for each slip, those that meet it run with it switched on, the tests of its
layer first, fastest first, until one fails. What nobody sees is printed, and listed with its reason in
tests/README.md. State is kept in build/mutants: a second call goes on where the first ended, and tries
survivors again with tests that are new or have changed.
"""
import argparse
import difflib
import fcntl
import multiprocessing
import os
import re
import subprocess
import sys
import time

import build
import source
import suite

PASS_PERCENT = 85


def say(text):
    print(text, flush=True)


def one_line(text):
    return " ".join(text.split())


def describe(slip, files):
    original = one_line(files[slip.path].decode()[slip.start:slip.end])
    plain = one_line(slip.plain)
    change = f"lost: {original}" if plain == ";" else f"{original}  ->  {plain}"
    return f"{slip.path}:{slip.line} {slip.function}: {slip.kind}: {change}"


def reasons():
    """Id -> reason, from the table of tests/README.md; a row may hold several ids."""
    with open(os.path.join(build.ROOT, "tests", "README.md")) as f:
        rows = re.findall(r"^\| ((?:`[0-9a-f]{8}` ?)+)\|.*\| ([^|]+) \|$", f.read(), re.M)
    return {id_: why for ids, why in rows for id_ in re.findall(r"[0-9a-f]{8}", ids)}


def work(index, tasks, results, tests, traces, interop, limit):
    """One worker process: tasks are ("record", test) or ("slip", number, id, path, passed)."""
    runner = suite.Runner(index)
    for task in iter(tasks.get, None):
        if task[0] == "record":
            results.put(("record", task[1], suite.record(runner, tests[task[1]])))
        else:
            _, number, id_, path, passed = task
            results.put(("slip", id_, suite.try_slip(runner, number, path, list(tests.values()), traces,
                                                     passed, interop, limit)))
    results.put(None)


def spread(jobs, todo, tests, traces, interop, limit):
    """Gives `todo` to `jobs` processes and yields their results."""
    tasks, results = multiprocessing.Queue(), multiprocessing.Queue()
    for task in todo + [None] * jobs:
        tasks.put(task)
    workers = [multiprocessing.Process(target=work, args=(i, tasks, results, tests, traces, interop,
                                                            limit))
               for i in range(jobs)]
    for worker in workers:
        worker.start()
    running = jobs
    while running:
        result = results.get()
        if result is None:
            running -= 1
        else:
            yield result
    for worker in workers:
        worker.join()


def record_all(tests, traces, built, numbers, jobs):
    """Notes what each test meets, unless that is known of this build."""
    todo = [t for t in tests.values()
            if traces.get(t.name, {}).get("built") != built or
            traces[t.name].get("signature") != t.signature or traces[t.name]["verdict"] != "passed"]
    begin = time.monotonic()
    for done, (_, name, trace) in enumerate(
            spread(jobs, [("record", t.name) for t in todo], tests, traces, True, None), 1):
        trace.update(built=built, signature=tests[name].signature)
        traces[name] = trace
        if trace["verdict"] != "passed":
            say(f"left out: {name} {trace['verdict']} with nothing switched on")
        if done % 50 == 0 or done == len(todo):
            say(f"recorded {done} of {len(todo)} tests, {time.monotonic() - begin:.0f} s")
            build.save("traces.json", traces)
    for name in list(traces):
        if name not in tests:
            del traces[name]
    build.save("traces.json", traces)


def report(chosen, results, files):
    known = reasons()
    layers = {}
    for _, slip in chosen:
        state = results.get(slip.id, {}).get("state", "untried")
        layers.setdefault(build.layer_of(slip.path), []).append((state, slip))
    say("\nlayer        slips  seen  lived")
    seen_all = tried_all = 0
    for layer in [l for l in suite.LAYERS if l in layers]:
        tried = [s for s, _ in layers[layer] if s != "untried"]
        seen = tried.count("killed")
        seen_all, tried_all = seen_all + seen, tried_all + len(tried)
        say(f"{layer:12} {len(tried):5} {seen:5} {len(tried) - seen:6}")
    percent = 100 * seen_all / max(1, tried_all)
    say(f"{'all':12} {tried_all:5} {seen_all:5} {tried_all - seen_all:6}   {percent:.1f} % seen")
    fresh = 0
    for layer in [l for l in suite.LAYERS if l in layers]:
        for state, slip in layers[layer]:
            if state in ("lived", "unreached"):
                result = results[slip.id]
                why = known.get(slip.id)
                fresh += why is None
                tests = f"{result['met']} tests met it" if result["met"] else "no test meets it"
                if result.get("left_out"):
                    tests += f", {result['left_out']} of them not run (--limit)"
                say(f"lived {slip.id} {describe(slip, files)}\n      {tests}"
                    f"{'; ' + why if why else '; no reason in tests/README.md'}")
    say(f"{seen_all} of {tried_all} slips seen ({percent:.1f} %), {tried_all - seen_all} lived, "
        f"{fresh} of them without a reason")
    return percent >= PASS_PERCENT


def show(id_, files):
    for path, slips in build.all_slips(files).items():
        for slip in slips:
            if slip.id == id_:
                text = files[path].decode()
                sys.stdout.writelines(difflib.unified_diff(
                    text.splitlines(True), source.plain(text, slip).splitlines(True), "a/" + path,
                    "b/" + path))
                result = build.load("results.json").get(id_, {})
                if result.get("state") == "killed":
                    say(f"seen by {result['by']} ({result['how']})")
                for name in sorted(result.get("passed", {})):
                    say(f"met, not seen, by {name}")
                number = build.load("numbers.json").get(id_)
                if number:
                    say(f"with it: SX_MUTANT={number} ctest --test-dir build/mutants/tree/build/release -R NAME")
                return 0
    say(f"no slip {id_} in these sources")
    return 1


def scan(path):
    """Prints all slips of one file: for the test of this tool and the curious."""
    with open(path) as f:
        text = f.read()
    files = {path: text.encode()}
    for slip in source.candidates(path, text, source.type_names_of([text])):
        say(describe(slip, files))
    return 0


def main():
    parser = argparse.ArgumentParser(prog="tools/mutants", description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="which slips are drawn (1)")
    parser.add_argument("--count", type=int, default=300, help="how many, over all layers (300)")
    parser.add_argument("--only", metavar="REGEX", help="slips of files whose path matches")
    parser.add_argument("--tests", metavar="REGEX", help="only tests whose name matches")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests at a time")
    parser.add_argument("--no-interop", dest="interop", action="store_false",
                        help="without the tests against TensorFlow")
    parser.add_argument("--limit", metavar="SECONDS", type=float,
                        help="of tests that one slip may take: quicker; some survivors would be seen")
    parser.add_argument("--again", action="store_true", help="forgets earlier results of these slips")
    parser.add_argument("--report", action="store_true", help="prints what is known; runs nothing")
    parser.add_argument("--show", metavar="ID", help="prints the difference that a slip makes")
    parser.add_argument("--scan", metavar="FILE", help="prints every slip that a C file can hold")
    args = parser.parse_args()
    if args.scan:
        return scan(args.scan)
    os.makedirs(build.WORK, exist_ok=True)
    files = build.read_sources()
    if args.show:
        return show(args.show, files)
    lock = open(os.path.join(build.WORK, "lock"), "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit("mutants: another run works in build/mutants")
    build.configure(files)
    chosen = build.choose(files, args.seed, args.count, args.only, args.jobs, say)
    results = build.load("results.json")
    if args.report:
        return 0 if report(chosen, results, files) else 1
    say("building")
    built = build.build(files, chosen)

    if "SEXTANT_PEERS" not in os.environ:  # looked for once, as tools/test does
        peers = subprocess.run([os.path.join(build.ROOT, "tools/peers")], capture_output=True, text=True)
        os.environ["SEXTANT_PEERS"] = peers.stdout.strip() if peers.returncode == 0 else "none"
    tests = {t.name: t for t in suite.list_tests(files)
             if args.tests is None or re.search(args.tests, t.name)}
    traces = build.load("traces.json") if args.tests is None else {}
    record_all(tests, traces, built, chosen, args.jobs)

    todo = []
    for number, slip in chosen:
        result = {} if args.again else results.get(slip.id, {})
        if result.get("state") != "killed":
            todo.append(("slip", number, slip.id, slip.path, result.get("passed", {})))
    by_id = {slip.id: slip for _, slip in chosen}
    begin = time.monotonic()
    for done, (_, id_, result) in enumerate(
            spread(args.jobs, todo, tests, traces, args.interop, args.limit), 1):
        results[id_] = result
        build.save("results.json", results)
        how = f"seen by {result['by']}" if result["state"] == "killed" else result["state"].upper()
        say(f"[{done}/{len(todo)} {time.monotonic() - begin:.0f} s] {id_} "
            f"{describe(by_id[id_], files)[:150]}: {how}, {result['seconds']:.1f} s")
    return 0 if report(chosen, results, files) else 1


sys.exit(main())
