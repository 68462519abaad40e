#!/usr/bin/env bash
# The commands and the model of README.md and examples/README.md run as they are written, in their order.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
mkdir bin && ln -s "$sextant" bin/sextant
export PATH=$here/bin:$PATH
unset VIRTUAL_ENV PJRT_NAMES_AND_LIBRARY_PATHS TPU_NAME
export GCE_METADATA_IP=127.0.0.1:1 # nothing answers
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; wait; rm -rf "$here"' EXIT

blocks() { # FILE LANGUAGE: the text of its blocks
    awk -v begin="^\`\`\`$2\$" '$0 ~ begin {on = 1; next} /^```/ {on = 0} on' "$1"
}
ended() { # CODE COMMAND
    code=$1 ran=${2#sextant }
    [ "$code" = 0 ] || fail "of the README: $2"
}
run_line() {
    local line=$1
    case $line in
        'make demo') ;;                        # tests/cli/test_demo.sh
        'sudo make install'* | c*pkg-config*) ;; # tests/tools/test_install.sh
        'sextant data fetch flowers --dir photos/')
            ls photos/*/* >/dev/null ;; # no network: the photographs are drawn above
        *'--device tpu'* | *'--device pjrt:'* | *'--target tpu:'*)
            # What needs a plugin is told what to install; the options are right (a usage error is 2).
            code=0
            eval "${line%%#*}" >out 2>err || code=$?
            ran=$line
            [ "$code" = 6 ] || fail "expected exit code 6"
            grep -qE 'pip install|no TPU found' err || fail 'it is not said what is missing' ;;
        *' &') # the ports of the README may be taken
            eval "$(sed "s/8501/$port/; s/sextant serve/& --port=0/" <<<"$line")" >server.out 2>&1
            server=$!
            for _ in $(seq 600); do
                ! grep -q "^Serving flowers at http://.*:$port" server.out || break
                kill -0 $server || fail "$(cat server.out)"
                sleep .1
            done ;;
        *)
            code=0
            eval "$(sed "s/8501/$port/" <<<"${line%%  #*}")" >out 2>err || code=$?
            ended "$code" "$line" ;;
    esac
}

photos 6
cp photos/rose/$(ls photos/rose | head -1) rose.jpg
mapfile -t lines < <(blocks "$SEXTANT_SRC/README.md" console | sed -n 's/^\$ //p')
[ "${#lines[@]}" -ge 16 ] || fail "only ${#lines[@]} commands found"
for line in "${lines[@]}"; do
    run_line "$line"
done
blocks "$SEXTANT_SRC/README.md" c >flowers.c
ok train ./flowers.c --data 'data/train-*' --steps 1 --batch-size 2
ok zoo ./flowers.c
says_line '  num_classes    5  (or the number of classes in the data, if known)'
says_line '  augment  flip_left_right'

mkdir -p checkout/build && cd checkout
ln -s "$SEXTANT_BUILD" build/release
ln -s "$SEXTANT_SRC/examples" examples
cp "$SEXTANT_SRC/fuzz/corpus/png/gray.png" digit.png
mapfile -t lines < <(blocks "$SEXTANT_SRC/examples/README.md" console | sed -n 's/^\$ //p')
[ "${#lines[@]}" -ge 6 ] || fail "only ${#lines[@]} commands found"
for line in "${lines[@]}"; do
    run_line "$line"
done
# Every example is in the table.
for file in examples/*.c examples/*.cpp; do
    grep -qF "| \`${file#examples/}\` |" examples/README.md || fail "examples/README.md lacks $file"
done
