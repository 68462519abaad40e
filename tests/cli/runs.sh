# Runs that are stopped and go on; source it after lib.sh.
#
#   variables DIR STEP        every variable of a checkpoint, and its slots, to the byte; on stdout
#   same_variables A B STEP   fails unless those of both runs are equal
#   interrupt SIGNAL SECONDS WORDS...   runs sextant, sends it the signal then; its exit code is in $code
variables() {
    "$SEXTANT_TEST_BIN/bundle_tool" dump "$1/model.ckpt-$2" | grep -v '^_\|^save_counter/'
}
same_variables() {
    variables "$1" "$3" >"$here/variables-1"
    variables "$2" "$3" >"$here/variables-2"
    grep -q '/kernel ' "$here/variables-1" || fail "no variables in $1/model.ckpt-$3"
    cmp "$here/variables-1" "$here/variables-2" || fail "$1 and $2 differ at step $3"
}
interrupt() {
    local signal=$1 seconds=$2 pid
    shift 2
    ran=$*
    code=0
    "$sextant" "$@" >"$here/out" 2>"$here/err" </dev/null &
    pid=$!
    sleep "$seconds"
    kill -s "$signal" "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || code=$?
}

# killed_runs N: a small run is killed N times at random moments, each time going on where it was,
# from the start again whenever it is through; its weights must be those of a run left alone.
killed_runs() {
    local kills=0 rounds=0 data='generated:digits?n=512'
    local words=(train mnist_cnn --data "$data" --eval-data 'generated:digits?n=64&seed=2' --seed 11
        --batch-size 16 --epochs 2 --save-checkpoints-steps 3 --steps-per-eval 13
        --log-step-count-steps 0 --require-exact)
    local start=${EPOCHREALTIME/./}
    ok "${words[@]}" --model-dir alone
    local whole=$((${EPOCHREALTIME/./} - start))
    RANDOM=${KILL_SEED:-4711}
    while [ "$kills" -lt "$1" ]; do
        [ $((rounds += 1)) -lt $((20 * $1)) ] || fail "only $kills of $rounds runs were killed"
        local moment=$((whole * RANDOM / 32768))
        interrupt KILL "$((moment / 1000000)).$(printf %06d $((moment % 1000000)))" "${words[@]}" --model-dir killed
        case $code in
        137) kills=$((kills + 1)) ;;
        0)
            same_variables alone killed 64
            rm -r killed
            ;;
        *) fail "after $kills kills" ;;
        esac
    done
    ok "${words[@]}" --model-dir killed
    same_variables alone killed 64
    cmp alone/history.json killed/history.json || fail 'the evaluations differ'
}
