#!/usr/bin/env bash
# Manual pages: one for the program and one for each command, without roff warnings, with every option
# of --help, and examples that can be copied.
. "$SEXTANT_SRC/tests/cli/lib.sh"
"$SEXTANT_SRC/tools/gen-docs" "$sextant" docs
ok help
commands=$(sed -n 's/^  \([a-z][a-z -]*[a-z]\)   *.*/\1/p' out)
[ "$(echo "$commands" | wc -l)" -ge 20 ] || fail "$commands"
[ "$(ls docs/man1 | wc -l)" = $(($(echo "$commands" | wc -l) + 1)) ] || fail "$(ls docs/man1)"
cat >check.py <<'PY'
import re, sys
macros = {"TH", "SH", "SS", "TP", "PP", "B", "I", "BR", "nf", "fi", "nh", "ad"}
for path in sys.argv[1:]:
    page, help_text = open(path).read(), open(path.replace("docs/man1", "help")).read()
    for line in page.splitlines():
        assert line.startswith('.\\"') or not re.match(r"[.']", line) or line[1:].split()[0] in macros, (path, line)
        assert all(ord(c) < 127 for c in line), (path, line)
        for escape in re.findall(r"\\(\(..|f.|.)", line):
            assert escape in ("fB", "fI", "fR", "-", "e", "&", ":", "(aq", "(ga", "(ha", "(ti", '"'), (path, escape)
    assert page.count("\n.nf\n") == page.count("\n.fi\n"), path
    options = re.findall(r"^  (?:-\w, )?--(?:\[no-\])?([a-z0-9-]+)", help_text, re.M)
    assert path.endswith("/sextant.1") or len(options) >= 3, (path, options)
    for option in options:
        name = re.escape(option.replace("-", "\\-"))
        assert re.search(r"\\fB\\-\\-(\\fR\[\\fBno\\-\\fR\]\\fB)?" + name + r"\\fR", page), (path, option)
    for heading in ("NAME", "SYNOPSIS", "OPTIONS", "SEE ALSO"):
        assert f".SH {heading}\n" in page, (path, heading)
PY
mkdir help
while read -r command; do
    # shellcheck disable=SC2086 # words of a command
    ok help $command
    mv out "help/sextant-${command// /-}.1"
done <<<"$commands"
"$sextant" help >help/sextant.1
python3 check.py docs/man1/* >out 2>err || fail 'a page is not as it should be'
while read -r command; do
    grep -qx "\.BR sextant\\\\-$(sed 's/[ -]/\\\\-/g' <<<"$command") (1)" docs/man1/sextant.1 || fail "sextant(1) lacks $command"
done <<<"$commands"

# One page has what users of sx_function_node() need to know of every operator.
page=docs/man7/sextant-operators.7
ok ops
sed -n '2,/^$/s/^\([a-z0-9_]*\) .*/.SS \1/p' out >operators
[ "$(wc -l <operators)" -ge 250 ] || fail 'the table of operators'
grep '^\.SS ' $page | cmp - operators || fail 'not every operator has a section'
awk '/^\.nf/ { getline; if ($0 !~ /^[a-z0-9_]+[:, ]/) { print; bad = 1 } } END { exit bad }' $page || fail 'a section does not begin with its operator'
grep -q '^  trips  *maximum number of iterations' $page || fail 'the attributes of while'

if type groff >/dev/null 2>&1; then
    groff -man -ww -z -Tutf8 docs/man1/* 2>err || fail 'groff refuses a page'
    quiet
    groff -Kutf8 -man -ww -z -Tutf8 $page 2>err || fail 'groff refuses the page of operators'
    quiet
    groff -man -Tutf8 -P-cbou -rLL=200n docs/man1/sextant-train.1 >out
    says "--[no-]shuffle"
    says "sextant train flowers_cnn --data 'data/train-*' --eval-data 'data/val-*' --model-dir run1 --epochs 20 --seed 7"
    groff -man -Tutf8 -P-cbou docs/man1/sextant.1 >out
    says 'sextant-data-from-images(1)'
    says 'out of memory or disk space'
    says 'PJRT_NAMES_AND_LIBRARY_PATHS'
else
    echo 'groff is not installed: pages are checked without it'
fi

# They are installed, with the completion scripts.
cmake --install "$SEXTANT_BUILD" --prefix "$here/root" --component docs >out 2>err || fail 'the installation failed'
cmp docs/man1/sextant-train.1 root/share/man/man1/sextant-train.1 || fail 'no installed manual page'
[ "$(ls root/share/man/man1)" = "$(ls docs/man1)" ] || fail 'not all pages are installed'
cmp $page root/share/man/man7/sextant-operators.7 || fail 'no installed page of the operators'
cmp docs/bash/sextant root/share/bash-completion/completions/sextant || fail 'no installed completion for bash'
cmp docs/zsh/_sextant root/share/zsh/site-functions/_sextant || fail 'no installed completion for zsh'
for page in docs/man1/*.1; do
    grep -qx '.SH DESCRIPTION' "$page" || fail "$page has no description"
done
fails 2 help --man nothing
warns 'unknown command "nothing"'
