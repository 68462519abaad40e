# What the tests of the command line share; each sources it first. They work in a fresh folder.
#
#   run WORDS...           runs sextant; its output is in ./out and ./err, its exit code in $code
#                          (124 if it takes longer than $limit, which a test may set: 20s)
#   ok WORDS...            the same, and it must succeed
#   fails CODE WORDS...    the same, and it must end with that code
#   says TEXT, warns TEXT  ./out, ./err contains the text (says_line, warns_line: has it as a whole
#                          line)
#   says_not, warns_not    or not
#   is FILE                ./out is the text on stdin
set -euo pipefail
sextant=$SEXTANT_BIN
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here"
export XDG_CACHE_HOME=$here/cache NO_COLOR=1
ran=
limit=0

fail() {
    echo "FAILED in line ${BASH_LINENO[-2]} after: sextant $ran"
    echo "$@"
    echo "--- exit code ${code:-none}; stdout:"
    cat "$here/out"
    echo "--- stderr:"
    cat "$here/err"
    exit 1
}
run() {
    ran=$*
    code=0
    timeout "$limit" "$sextant" "$@" >"$here/out" 2>"$here/err" </dev/null || code=$?
}
ok() {
    run "$@"
    [ "$code" = 0 ] || fail "expected success"
}
fails() {
    local expected=$1
    shift
    run "$@"
    [ "$code" = "$expected" ] || fail "expected exit code $expected"
}
says() { grep -qF -- "$1" "$here/out" || fail "stdout lacks: $1"; }
says_line() { grep -qxF -- "$1" "$here/out" || fail "stdout lacks the line: $1"; }
says_not() { ! grep -qF -- "$1" "$here/out" || fail "stdout has: $1"; }
warns() { grep -qF -- "$1" "$here/err" || fail "stderr lacks: $1"; }
warns_line() { grep -qxF -- "$1" "$here/err" || fail "stderr lacks the line: $1"; }
warns_not() { ! grep -qF -- "$1" "$here/err" || fail "stderr has: $1"; }
quiet() { [ ! -s "$here/err" ] || fail "stderr is not empty"; }
is() {
    cat >"$here/expected"
    diff -u "$here/expected" "$here/out" >"$here/diff" || fail "$(cat "$here/diff")"
}
