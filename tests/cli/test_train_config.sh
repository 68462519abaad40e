#!/usr/bin/env bash
# --config: options by name; the command line comes first; mistakes are named.
. "$SEXTANT_SRC/tests/cli/lib.sh"
cat >run.json <<'JSON'
{"data": "generated:digits?n=320", "epochs": 2.0, "train_batch_size": 64, "seed": 5,
 "learning-rate": 0.01, "shuffle": false, "param": {"num_classes": 10}}
JSON
ok train linear --config run.json --model-dir a
says_line 'Training for 10 steps (2 epochs in total). Current step 0.'
ok train linear --config run.json --model-dir b --epochs 1
says_line 'Training for 5 steps (1 epoch in total). Current step 0.'
grep -q '"train_batch_size": 64' a/sextant.json || fail 'the run does not know its batch size'
echo '{"epochz": 3}' >bad.json
fails 2 train linear --data 'generated:digits?n=64' --config bad.json
warns 'bad.json: unknown option epochz; did you mean "epochs"?'
echo '{"epochs": "three"}' >bad.json
fails 2 train linear --data 'generated:digits?n=64' --config bad.json
warns '--epochs is "three", expected an integer'
echo '{"config": "run.json"}' >bad.json
fails 2 train linear --data 'generated:digits?n=64' --config bad.json
warns 'bad.json: "config": a configuration file cannot name another one'
echo '{"epochs": ' >bad.json
fails 2 train linear --data 'generated:digits?n=64' --config bad.json
warns 'bad.json:'
fails 2 train linear --data 'generated:digits?n=64' --config missing.json
warns 'cannot open missing.json: No such file or directory'
ok train linear --data 'generated:digits?n=64' --max-steps 1 --save_summary_steps 100
warns 'event files for TensorBoard are not written'
