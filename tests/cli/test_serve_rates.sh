#!/usr/bin/env bash
# serve: a client's rate for each model is kept, whatever other names it calls.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/server.sh"
ok train mnist_cnn --data 'generated:digits?n=64&seed=1' --model-dir run --steps 1 --batch-size 8
ok export run --out models/m
printf 'anna sesame\n' >keys
printf 'key:anna * rate=0.001\n' >rules
start m --model_name=m --model_base_path=models/m --api_keys_file=keys --auth_rules_file=rules
call() { # URL CODE NUMBER: so many answers have this code
    curl -s -o /dev/null -w '%{http_code}\n' -H 'X-API-Key: sesame' -d '{"instances": []}' "http://localhost:$port/v1/models/$1:predict" >codes
    [ "$(grep -c "^$2$" codes)" = "$3" ] || fail "$1: $(sort codes | uniq -c)"
}
call m 400 1
call m 429 1
call 'other[1-20000]' 404 20000
call m 429 1
