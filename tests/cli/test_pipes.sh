#!/usr/bin/env bash
# Named pipes where a file is expected: those without a writer do not keep the program from ending,
# and where any stream of bytes will do, pipes are read to their end.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=8'
photo=$SEXTANT_SRC/fuzz/corpus/jpeg/rgb.jpg
mkfifo pipe pipe.c pipe.so
ok train linear --data "$data" --steps 1 --model-dir run
ok export run --out models

# Where a regular file is needed, others are refused at once.
limit=10
refuses() {
    run "$@"
    [ "$code" != 0 ] && [ "$code" != 124 ] || fail 'a pipe without a writer was not refused'
    warns 'egular file'
}
refuses train ./pipe.c --data "$data"
refuses train linear --data "$data" --device pjrt --pjrt-plugin ./pipe.so
refuses train linear --data pipe
refuses train linear --data "$data" --eval-data pipe
refuses evaluate run --data pipe
refuses predict run --data pipe
refuses run models --input pipe
refuses query http://127.0.0.1:1/v1/models/x --input pipe
refuses data show pipe
refuses data from-images pipe --out x
refuses data from-idx pipe pipe --out x

# Where a pipe may be read, a signal ends the wait for its writer.
ends() {
    local expected=$1 signal=$2
    shift 2
    ran="$*, then SIG$signal"
    code=0
    timeout --signal="$signal" --kill-after=10 --preserve-status 0.3 "$sextant" "$@" </dev/null >out 2>err || code=$?
    [ "$code" = "$expected" ] || fail "expected exit code $expected"
}
ends 143 TERM predict run --image pipe
ends 130 INT predict run --image pipe
ends 143 TERM run models --image pipe
ends 143 TERM train linear --config pipe --data "$data"
ends 143 TERM query http://127.0.0.1:1/v1/models/x --image pipe
ends 143 TERM query http://127.0.0.1:1/v1/models/x --request pipe

# Pipes with a writer are read to their end, standard input as well.
limit=20
echo '{"steps": 3}' >pipe &
ok train linear --config pipe --data "$data" --model-dir from-pipe
[ -e from-pipe/model.ckpt-3.index ] || fail 'the options in the pipe were not read'
ok train linear --config <(sleep 0.2; echo '{"steps": 4}') --data "$data" --model-dir substituted
[ -e substituted/model.ckpt-4.index ] || fail 'the options of the process were not read'
(cat "$photo"; sleep 0.2) | timeout 20 "$sextant" predict run --image /dev/stdin >out 2>err || fail 'stdin was not read'
says '/dev/stdin'
"$sextant" predict run --image /dev/stdin >out 2>err <"$photo" || fail 'a file as stdin was not read'
says '/dev/stdin'
