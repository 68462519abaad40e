#!/usr/bin/env bash
# XLA's CPU plugin does not join the devices of processes, and that is said.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/pjrt.sh"
. "$SEXTANT_SRC/tests/cli/processes.sh"
plugin=$SEXTANT_PJRT_PLUGIN
new_port
for i in 0 1; do begin xla $i 2 train mlp --data 'generated:digits?n=64' --steps 1 --replicas 1; done
for i in 0 1; do
    finish xla $i
    [ "$code" != 0 ] || fail "process $i has trained"
    told xla $i 'does not join the devices of several processes: it shows '
done
