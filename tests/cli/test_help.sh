#!/usr/bin/env bash
# Help comes from the rows: every command is listed, and says its words, options, defaults.
. "$SEXTANT_SRC/tests/cli/lib.sh"
fails 2
says 'usage: sextant COMMAND [options]'
ok help
says '  zoo '
says '  version '
ok --help
for command in $(awk '/^  [a-z]/ {print $1}' out); do
    [ "$command" = data ] && continue
    ok help "$command"
    says "usage: sextant $command"
    cp out direct
    ok "$command" --help
    diff direct out >/dev/null || fail "help $command and $command --help differ"
done
ok help
awk 'length > 80 {exit 1}' out || fail 'a line of the overview is wider than 80 columns'
ok help predict
grep -B 1 '^With --model' out | head -n 1 | grep -qx '' || fail 'no empty line between paragraphs'
ok help zoo
says '--verbosity debug|info|warn|error'
says 'default: info'
