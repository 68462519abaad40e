#!/usr/bin/env bash
# Completion in bash: the function gets what bash gives it, then the Tab key in an interactive shell.
. "$SEXTANT_SRC/tests/cli/lib.sh"
"$sextant" completion bash >completion.bash
mkdir -p work/photos work/notes.dir
cd work
: >notes.txt
: >model.c
cat >../words.bash <<'SH'
source "$1"
complete -p sextant | grep -q -- '-F _sextant sextant' || exit 1
while IFS=$'\t' read -r -a COMP_WORDS; do
    # A word that ends the line after a space is empty; it is written as ''.
    [ "${COMP_WORDS[-1]}" != "''" ] || COMP_WORDS[-1]=
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _sextant sextant "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    echo "${COMPREPLY[@]}"
done
SH
# complete EXPECTED WORDS...: as bash splits them, the last one being completed.
complete() {
    local expected=$1 words
    shift
    ran="completing: $*"
    printf -v words '%s\t' "$@"
    bash --norc --noprofile ../words.bash ../completion.bash <<<"${words%$'\t'}" >"$here/out" 2>"$here/err" || fail 'the script fails'
    quiet
    [ "$(cat "$here/out")" = "$expected" ] || fail "expected: $expected"
}
complete 'train' sextant tr
complete 'data devices' sextant d
complete 'fetch from-images from-idx' sextant data f
complete 'zoo' sextant --color always zo
complete 'evaluate' sextant --color = never --verbosity error eva
complete 'evaluate' sextant --quiet eva
complete 'always' sextant --color al
complete '--quiet --verbosity --color --help --version' sextant -
complete 'mnist_cnn mlp model.c' sextant train m
complete '--optimizer' sextant train mnist_cnn --opt
complete 'sgd momentum rmsprop adam lars' sextant train --optimizer "''"
complete 'momentum' sextant train --optimizer mo
complete 'momentum' sextant train --optimizer = mo
complete 'float32 bfloat16' sextant train --precision = "''"
complete 'epoch' sextant train --steps_per_eval e
complete '--shuffle --shards' sextant train --sh
complete '--no-shuffle' sextant train --no-sh
complete 'photos' sextant train x --data ph
complete 'photos' sextant evaluate --data a.tar ph
complete 'notes.txt notes.dir' sextant predict run1 --image notes.t n
complete 'notes.dir' sextant evaluate n
complete 'notes.dir' sextant train x --model-dir n
complete '' sextant train x --epochs "''"
complete '' sextant train x -- "''"
complete 'latest' sextant predict run1 --checkpoint l
complete 'bash' sextant completion b
complete 'train' sextant help tr
complete 'resnet50' sextant zoo resn
complete '' sextant nothing "''"
complete '--quiet' sextant data show --qui
complete '--model_name --model_base_path --model_config_file --model_config_file_poll_wait_seconds --model_traffic_file --model_memory_limit --model_weights' sextant serve --model_
complete '--no_shuffle' sextant train --no_sh
complete 'fetch from-images from-idx' sextant help data f
complete 'mnist_cnn mlp model.c' sextant zoo m
complete 'none flip_left_right crop= shear= zoom= brightness= contrast= scaled_decode' sextant train --augment "''"
complete 'flip_left_right' sextant train --augment fl
# Every option of every command is offered, and nothing else.
cd "$here"
ok help
sed -n 's/^  \([a-z][a-z -]*[a-z]\)   *.*/\1/p' out >commands
cd work
while read -r command; do
    # shellcheck disable=SC2086 # words of a command
    expected=$("$sextant" help $command | sed -n 's/^  \(-q, \)\{0,1\}--/--/p' | awk '{ print $1 }' |
        sed 's/^--\[no-\]\(.*\)/--\1 --no-\1/' | tr '\n' ' ')
    # shellcheck disable=SC2086
    complete "${expected}--help" sextant $command -
done <../commands

cat >../tab.py <<'PY'
"""Types into an interactive shell and waits for what the line becomes."""
import os, pty, select, sys, time
shell, setup, program = sys.argv[1].split(), sys.argv[2], os.path.dirname(sys.argv[3])
pid, fd = pty.fork()
if pid == 0:
    os.environ.update({"PS1": "ready> ", "TERM": "dumb", "PATH": program + ":" + os.environ["PATH"], "HOME": os.getcwd()})
    os.execvp(shell[0], shell)
seen = ""
def expect(text, seconds=60):
    global seen
    end = time.monotonic() + seconds
    while text not in seen:
        if not select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
            raise AssertionError(f"no {text!r} in {seen!r}")
        seen += os.read(fd, 4096).decode(errors="replace")
    seen = seen[seen.index(text) + len(text):]
expect("ready> ")
for line in (setup, "echo begin''ning"):
    os.write(fd, line.encode() + b"\n")
expect("beginning")
for typed, completed in (("sextant eval\t", "uate "), ("sextant data verif\t", "y "), ("sextant train --optimizer mom\t", "entum "),
                         ("sextant train --optimizer=mom\t", "entum "), ("sextant train --data pho\t", "tos/"),
                         ("sextant train --learn\t", "ing-rate"), ("sextant help data verif\t", "y "),
                         ("sextant train --augment fl\t", "ip_left_right"),
                         ("sextant zoo resn\t", "et50 "), ("sextant serve --model_na\t", "me")):
    os.write(fd, typed.encode())
    expect(typed[:-1])
    expect(completed)
    os.write(fd, b"\x15")
os.write(fd, b"exit\n")
PY
ran='Tab in bash'
python3 ../tab.py 'bash --norc --noprofile -i' "source $here/completion.bash" "$sextant" >"$here/out" 2>"$here/err" || fail 'the Tab key'
mkdir ../zsh
"$sextant" completion zsh >../zsh/_sextant
if type zsh >/dev/null 2>&1; then
    ran='Tab in zsh'
    python3 ../tab.py 'zsh -f -i' "fpath=($here/zsh \$fpath); autoload -Uz compinit; compinit -u -D" "$sextant" \
        >"$here/out" 2>"$here/err" || fail 'the Tab key'
else
    echo 'zsh is not installed: its script is not run'
fi
cd "$here"
fails 2 completion fish
warns 'unknown shell "fish"; expected bash or zsh'
