#!/usr/bin/env bash
# A disk that fills up while a checkpoint is written: the error names the file, the checkpoint before
# it stays whole and is gone on from, nothing half written stays behind.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
mkdir disk
if [ -z "${IN_OWN_MOUNTS:-}" ]; then
    for own in "unshare -m" "unshare -rm"; do
        if $own mount -t tmpfs -o size=100k tmpfs disk 2>/dev/null; then
            export IN_OWN_MOUNTS=1
            $own bash "$SEXTANT_SRC/tests/cli/test_disk_full.sh"
            exit
        fi
    done
    echo 'SKIP: no tmpfs may be mounted here'
    exit 77
fi
full() { # SIZE WORDS...: trains on a disk of that size until it is full
    mount -t tmpfs -o "size=$1" tmpfs disk
    shift
    fails 5 train mnist_cnn --data 'generated:digits?n=640' --seed 1 --model-dir disk/run "$@"
    warns 'No space left on device'
    [ -z "$(find disk -name '*tmp*' -o -name '*.part*' -o -name '.*' ! -name . -type f)" ] || fail "$(find disk)"
}
full 300k --epochs 2
warns 'disk/run/model.ckpt-0'
umount disk

full 1100k --epochs 2 --save-checkpoints-steps 5 --steps-per-eval 1000
warns 'saving disk/run/model.ckpt-10'
ok evaluate disk/run --data 'generated:digits?n=64' --json
says '"step": 5,'
mount -o remount,size=20m disk
ok train mnist_cnn --data 'generated:digits?n=640' --seed 1 --model-dir disk/run --epochs 2 --require-exact
says 'Resuming from disk/run/model.ckpt-5.'
ok train mnist_cnn --data 'generated:digits?n=640' --seed 1 --model-dir whole --epochs 2
same_variables whole disk/run 40

# The data commands and predict leave nothing half written either.
umount disk
mount -t tmpfs -o size=100k tmpfs disk
fails 5 predict whole --data 'generated:digits?n=20000' --out disk/p.csv
warns 'disk/p.csv'
[ -z "$(ls -A disk)" ] || fail "$(ls -A disk)"
fails 5 export whole --out disk/m
[ -z "$(find disk -name '*.pb')" ] || fail "$(find disk)"
umount disk
