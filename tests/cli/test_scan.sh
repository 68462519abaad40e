#!/usr/bin/env bash
# scan: operators that a SavedModel has, by name.
. "$SEXTANT_SRC/tests/cli/lib.sh"
ok train linear --data generated:digits --model-dir run --steps 1
ok export run --out m
ok scan --dir m
is <<'END'
MetaGraph with tag set ['serve'] does not contain the default denylisted ops: {'PrintV2', 'ReadFile', 'WriteFile'}
END
ok scan --dir m/1 --tag_set serve --op_denylist 'Foo, MatMul'
is <<'END'
MetaGraph with tag set ['serve'] contains the following denylisted ops: {'MatMul'}
END
# Names are printed as Python's repr() does: no control character gets to the terminal.
ok scan --dir m/1 --op_denylist $'a\xc2\x9b31m,b\xff,\xc3\xa9'
says "{'a\\x9b31m', 'b\\xff', '"$'\xc3\xa9'"'}"
fails 1 scan --dir m/1 --tag_set gpu
warns 'no graph has the tags "gpu"; the model has "serve"'
fails 1 scan --dir missing
warns 'missing'
fails 2 scan
warns '--dir'
head -c 100 m/1/saved_model.pb >cut && mv cut m/1/saved_model.pb
fails 3 scan --dir m/1
