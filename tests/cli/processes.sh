# Several processes that train in step, on our own PJRT plugin (tests/pjrt_ref), which joins their
# devices; source it after lib.sh.
#
#   begin NAME I N WORDS...   starts `sextant WORDS...` as process I of N; its output is in NAME.I.out
#                             and NAME.I.err
#   finish NAME I             waits for it; its exit code is in $code
#   together NAME N WORDS...  begins N of them and finishes all, which must succeed
#   told NAME I TEXT          its stderr contains the text
unset PJRT_NAMES_AND_LIBRARY_PATHS TPU_LIBRARY_PATH VIRTUAL_ENV TF_CONFIG
plugin=$SEXTANT_TEST_BIN/libpjrt_ref.so
declare -A pids
port=0
# A port where nobody listens.
new_port() {
    port=$((20000 + RANDOM % 12000))
    while (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null; do port=$((port + 1)); done
}
begin() {
    local name=$1 i=$2 n=$3
    shift 3
    ran=$*
    "$sextant" "$@" --device pjrt --pjrt-plugin "$plugin" --coordinator "127.0.0.1:$port" \
        --num-processes "$n" --process-id "$i" >"$here/$name.$i.out" 2>"$here/$name.$i.err" </dev/null &
    pids[$name.$i]=$!
}
finish() {
    code=0
    wait "${pids[$1.$2]}" || code=$?
    cp "$here/$1.$2.out" "$here/out"
    cp "$here/$1.$2.err" "$here/err"
}
together() {
    local name=$1 n=$2 i
    shift 2
    new_port
    for ((i = 0; i < n; i++)); do begin "$name" "$i" "$n" "$@"; done
    for ((i = 0; i < n; i++)); do
        finish "$name" "$i"
        [ "$code" = 0 ] || fail "process $i of $n: $(cat "$here/$name.$i.err")"
    done
}
told() { grep -qF -- "$3" "$here/$1.$2.err" || fail "process $2 does not say: $3"; }
