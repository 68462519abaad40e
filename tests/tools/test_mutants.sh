#!/usr/bin/env bash
# tools/mutants: with a slip's switch off the program is the original, with it on the slip as it
# reads; and what a run meets is noted.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/sample.c" <<'C'
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 3, LEAST = 1 };
#define SCALE 2.5

typedef struct row {
    int id;
    bool loud;
} row;

static const row rows[] = {
    {.id = 6},
    {.id = 7, .loud = true},
    {.id = 9},
    {.id = 11, .loud = true},
};
static int calls;

static void call(void)
{
    calls++;
}

static int mix(int a, int b)
{
    return 10 * a + b;
}

static int check(const int *v, int n, int limit)
{
    if (n > limit || !v) {
        return -1;
    }
    int sum = 0;
    bool any = false;
    for (int i = 0; i < n; i++) {
        if (v[i] == 5 && limit < 8) {
            continue;
        }
        sum += v[i] << 1;
        any = any || sum > 90;
    }
    call();
    return any ? 1 : n >= 2 ? sum : mix(n, limit - 1);
}

int main(void)
{
    static const int values[] = {1, 2, 4, 5, 6, 70, 80, 90};
    for (int n = LEAST; n <= MOST; n++) {
        printf("%d %d %d,", check(values + 2, n, 3), check(values + 2, n, 9),
               check(values + 3, n, n));
    }
    for (int i = 1; i < 3; i++) {
        printf("%d %d,", rows[i].id, rows[i].loud);
    }
    printf("%d %g %d\n", calls, SCALE, check(NULL, 1, 2));
    return 0;
}
C
cat >"$dir/try.py" <<'P'
import os, subprocess, sys
tool, where = os.path.join(os.environ["SEXTANT_SRC"], "tools/mutants"), sys.argv[1]
sys.path.insert(0, tool)
import source

with open(where + "/sample.c") as f:
    text = f.read()

def build(name, text, *options):
    with open(f"{where}/{name}.c", "w") as f:
        f.write(text)
    subprocess.run(["gcc", "-w", "-O0", *options, "-o", f"{where}/{name}", f"{where}/{name}.c"], check=True)

def run(name, **environment):
    done = subprocess.run([f"{where}/{name}"], capture_output=True, env=environment, timeout=1)
    return done.returncode, done.stdout

switch = ("-include", f"{tool}/switch.h", f"{where}/switch.o")
subprocess.run(["gcc", "-c", "-include", f"{tool}/switch.h", "-o", switch[2], f"{tool}/switch.c"], check=True)
build("original", text)
original = run("original")
slips = source.candidates("src/x/sample.c", text, source.type_names_of([text]))
kinds = {}
for slip in slips:
    kinds.setdefault(slip.kind, []).append(slip)
met = 0
# Two of each kind.
for slip in [s for of in kinds.values() for s in (of[0], of[-1])]:
    build("switched", source.switched(text, [(17, slip)]), *switch)
    assert run("switched") == original, slip.plain
    trace = where + "/trace"
    with open(trace, "wb") as f:
        f.truncate(1 << 14)
    assert run("switched", SX_MUTANT_TRACE=trace) == original, slip.plain
    with open(trace, "rb") as f:
        noted = [n for n, how in enumerate(f.read()) if how & 1]
    assert noted in ([], [17]), noted
    if slip.kind in ("ignored error", "lost check") or "ignored(" in slip.plain:
        plain = source.plain(text, slip).replace("ignored", "")
    else:
        plain = source.plain(text, slip)
    if slip.function != "MOST":  # the enumerator itself counts on
        build("plain", plain)
        try:
            expected = run("plain")
        except subprocess.TimeoutExpired:
            continue  # a loop without end
        got = run("switched", SX_MUTANT="17")
        assert got == expected, (slip.kind, slip.plain, got, expected)
        # Where nothing was noted, the tests need not run: then nothing may differ.
        assert noted or got == original, (slip.kind, slip.plain)
        met += got != original
print(f"{len(slips)} slips of {len(kinds)} kinds, {met} of those tried seen")
expected = {"comparison", "boundary", "condition", "lost condition", "negation", "arithmetic", "number",
            "flag", "limit", "table", "lost call", "lost assignment", "lost check", "swapped arguments",
            "swapped results", "lost jump", "index"}
assert expected <= set(kinds), expected - set(kinds)
assert met >= 20
P
python3 "$dir/try.py" "$dir"
