#!/usr/bin/env bash
# history.json: the epochs' loss and metrics without --eval-data, and evaluations with it, under Keras' names.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=96'
columns() { # FILE: the members of each entry, one line each
    python3 -c 'import json, sys
for row in json.load(open(sys.argv[1]))["history"]: print(row["epoch"], row["step"], *list(row)[2:])' "$1"
}
ok train mlp --data "$data" --model-dir a --epochs 2
columns a/history.json >out
is <<'END'
1 3 loss accuracy
2 6 loss accuracy
END
cp a/history.json a-two.json
ok train mlp --data "$data" --model-dir a --epochs 3 --eval-data "$data"
columns a/history.json >out
is <<'END'
1 3 loss accuracy
2 6 loss accuracy
3 9 loss accuracy val_loss val_accuracy val_examples
END
ok evaluate a --data "$data" --json
python3 - out a/history.json <<'END' || fail 'the evaluation is another'
import json, sys
result, row = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))["history"][-1]
assert row["val_loss"] == result["loss"] and row["val_accuracy"] == result["accuracy"], (result, row)
assert row["val_examples"] == 96 and 0 < row["loss"] < 10
END
ok train mlp --data "$data" --model-dir b --max-steps 5
columns b/history.json >out
is <<'END'
1 3 loss accuracy
2 5 loss accuracy
END
# The end of a run in the middle of an epoch leaves no entry when the run goes on.
ok train mlp --data "$data" --model-dir b --epochs 2
columns b/history.json >out
is <<'END'
1 3 loss accuracy
2 6 loss accuracy
END
cmp b/history.json a-two.json || fail 'the history differs from that of a run that was not stopped'
ok help train
says 'history.json'
