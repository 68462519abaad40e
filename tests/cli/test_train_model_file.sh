#!/usr/bin/env bash
# A model in C: compiled, cached, loaded; parameters after --; mistakes are reported with the user's
# file and line, a crash in its code with the file and the signal.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=64'
cat >net.h <<'C'
#define UNITS 16
C
cat >net.c <<'C'
#include <sextant/model.h>
#include "net.h"
static sx_spec net(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = sx_flatten(b, in->features);
    x = sx_dense(b, x, sx_param_int(p, "units", UNITS), .activation = SX_RELU);
    return sx_classifier_spec(b, sx_dense(b, x, 10), in->labels);
}
SX_MODEL(net, .build = net, .image = {28, 28, 1}, .scale = SX_0_1)
C
ok train ./net.c --data "$data" --model-dir run --steps 3 -- --units 8
grep -q '"net"' run/sextant.json || fail 'the model is not named'
[ "$(ls cache/sextant/models | wc -l)" = 1 ] || fail 'not cached'
ok train ./net.c --data "$data" --model-dir run --steps 1 -- --units=8
says 'Resuming'
[ "$(ls cache/sextant/models | wc -l)" = 1 ] || fail 'compiled again'
sed -i 's/16/24/' net.h
ok train net.c --data "$data" --steps 1
[ "$(ls cache/sextant/models | wc -l)" = 2 ] || fail 'a change in a header does not count'
mv net.c gone.c
ok evaluate run --data "$data" --json
mv gone.c net.c

fails 1 train ./missing.c --data "$data"
warns 'missing.c: no such file'
mkdir empty
fails 1 train ./empty --data "$data"
warns './empty is a directory; expected a model in C or C++, such as ./empty/model.c'
cp net.c empty/flowers.c
fails 1 train ./empty/ --data "$data"
warns './empty/ is a directory; did you mean ./empty/flowers.c?'
cp net.c net.txt
fails 1 train ./net.txt --data "$data"
warns './net.txt: expected a model in C or C++, a file that ends in .c, .cpp, .cc or .cxx'

# --- a signal ends the wait for the compiler
printf '#!/bin/sh\ntouch %s/started\nexec sleep 100\n' "$here" >slow-cc
chmod +x slow-cc
CC=$here/slow-cc "$sextant" train ./net.c --data "$data" >out 2>err </dev/null &
pid=$!
until [ -e started ]; do sleep 0.01; done
kill -TERM "$pid"
code=0
wait "$pid" || code=$?
ran='train ./net.c with a slow compiler'
[ "$code" = 143 ] || fail 'SIGTERM did not end it'
sed 's/units/unitz/; s/SX_RELU/SX_RELUU/' net.c >bad.c
fails 1 train ./bad.c --data "$data"
warns 'bad.c; output of cc:'
warns "bad.c:6:"
warns 'SX_RELUU'
sed 's/sx_dense(b, x, 10)/sx_densee(b, x, 10)/' net.c >bad.c
fails 1 train ./bad.c --data "$data"
warns 'sx_densee'
sed 's/sx_flatten(b, in->features)/in->features/' net.c >bad.c
fails 1 train ./bad.c --data "$data"
warns 'bad.c:6: dense "dense"'
warns 'add sx_flatten()'
grep -v SX_MODEL net.c >bad.c
fails 1 train ./bad.c --data "$data"
warns 'defines no model; add SX_MODEL'
sed 's/{28/{.version = 9}, .image = {28/; s/\.image = {\.version = 9}, //; s/.build = net/.build = net, .version = 9/' net.c >bad.c
fails 1 train ./bad.c --data "$data"
warns 'version 9'

# --- parameters that the model does not have
fails 2 train ./net.c --data "$data" -- --unit 3
warns 'the model has no parameter "unit"; did you mean "units"?'
fails 2 train ./net.c --data "$data" -- --momentum .9
warns 'the model has no parameter "momentum"; it has "units"'
fails 2 train mnist_cnn --data "$data" --param num-clases=3
warns 'no parameter "num_clases"; did you mean "num_classes"?'
fails 2 train ./net.c --data "$data" -- --units
warns 'model parameter --units needs a value'
fails 2 train ./net.c --data "$data" -- --units --other 3
warns 'model parameter --units needs a value'
ok zoo ./net.c
says '  units          24'

# --- crashes
ends() { # CODE WORDS...; a sanitizer reports the signal itself, and ends otherwise
    local expected=$1
    shift
    if [ -n "${SEXTANT_SANITIZE:-}" ]; then
        run "$@"
        [ "$code" != 0 ] || fail 'expected a crash'
    else
        fails "$expected" "$@"
    fi
}
crashes() { # CODE FUNCTION-BODY MESSAGE: the model function with these lines at its begin
    local expected=$1
    awk -v body="$2" '{print} /^{/ {print body}' net.c >crash.c
    ends "$expected" train ./crash.c --data "$data" --steps 1
    warns "sextant: ./crash.c: $3"
}
crashes 139 'volatile int *nowhere = 0; *nowhere = 1;' 'segmentation fault (SIGSEGV) in the model function'
crashes 134 'extern void abort(void); abort();' 'aborted (SIGABRT) in the model function'
crashes 136 'volatile int zero = 0; zero = 7 / zero;' 'arithmetic exception'
crashes 139 'if (in) { volatile char deep[4096]; deep[0] = 1; net(b, in, p); deep[1] = 1; }' 'segmentation fault (SIGSEGV) in the model function'
awk '{print} /^{/ {print "extern void exit(int); exit(3);"}' net.c >crash.c
fails 1 train ./crash.c --data "$data" --steps 1
warns 'sextant: ./crash.c: the model function called exit()'
for function in _exit _Exit; do # no handler of exit() runs
    awk -v f=$function '{print} /^{/ {print "extern void " f "(int); " f "(0);"}' net.c >crash.c
    fails 1 train ./crash.c --data "$data" --steps 1
    warns "sextant: ./crash.c: the model function called $function()"
done
# In a constructor, while the file is loaded.
loads() { # BODY
    { cat net.c; echo "extern void exit(int), _exit(int), abort(void);"
      echo "__attribute__((constructor)) static void early(void) { $1 }"; } >crash.c
}
loads 'exit(0);'
fails 1 train ./crash.c --data "$data" --steps 1
warns 'sextant: ./crash.c: it called exit() while it was loaded'
loads '_exit(0);'
fails 1 train ./crash.c --data "$data" --steps 1
warns 'sextant: ./crash.c: it called _exit() while it was loaded'
loads 'abort();'
ends 134 train ./crash.c --data "$data" --steps 1
warns 'sextant: ./crash.c: aborted (SIGABRT) while it was loaded'
loads '*(volatile int *)8 = 1;'
ends 139 train ./crash.c --data "$data" --steps 1
warns 'sextant: ./crash.c: segmentation fault (SIGSEGV) while it was loaded'
# Values that no model can have.
sets() { # FIELDS MESSAGE
    sed "s/^SX_MODEL(.*/SX_MODEL(net, .build = net, $1)/" net.c >odd.c
    fails 1 train ./odd.c --data "$data" --steps 1
    warns "$2"
}
sets '.image = {28, 28, 1}, .scale = (sx_scale)-5' \
    'scale is -5, expected SX_SCALE_NONE, SX_0_1, SX_MINUS1_1 or SX_MEAN_STD'
sets '.image = {28, 28, 1}, .scale = (sx_scale)9' 'scale is 9, expected'
sets '.image = {-32, 32, 3}' 'model "net" sets .image = {-32, 32, 3}, expected a positive height'
sets '.image = {28, 28, 1}, .num_classes = -3' 'model "net" sets .num_classes = -3, expected at least 0'
sets '.features = -1' 'model "net" sets .features = -1, expected at least 0'
sets '.about = ""' 'model "net" sets neither .image = {height, width, channels} nor .features = n nor .inputs'
sed 's/return sx_cl/*(volatile int *)8 = 1; return sx_cl/' net.c >crash.c
ends 139 train ./crash.c --data "$data" --steps 1
warns 'segmentation fault (SIGSEGV) in the model function, after crash.c:6'
# In a function that the model hands over, outside the model function.
cat >host.c <<'C'
#include <sextant/model.h>
static void add(void *state, const sx_host_value *values, void *user) { *(int *)user = *(const int *)values->data; }
static double result(const void *state, void *user) { return 0; }
static sx_spec net(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value logits = sx_dense(b, sx_flatten(b, in->features), 10);
    sx_spec spec = sx_classifier_spec(b, logits, in->labels);
    spec.eval_metrics = (sx_eval_metrics){.tensors = {{"labels", in->labels}}, .metrics = {{"m", 4, 0, add, result}}};
    return spec;
}
SX_MODEL(net, .build = net, .image = {28, 28, 1})
C
ends 139 train ./host.c --data "$data" --eval-data "$data" --steps 1
warns 'sextant: ./host.c: segmentation fault (SIGSEGV) in its code'

# --- C++
if command -v c++ >/dev/null; then
    cat >net.cpp <<'CPP'
#include <sextant/sextant.hpp>
static sx_spec net(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = sx_flatten(b, in->features);
    x = sx_dense(b, x, sx_param_int(p, "units", 16), sx::activation = SX_RELU);
    return sx_classifier_spec(b, sx_dense(b, x, 10), in->labels, sx::optimizer = sx_adam(sx::learning_rate = 1e-2));
}
SX_MODEL(net, sx::build = net, sx::image = {28, 28, 1}, sx::scale = SX_0_1)
CPP
    ok train net.cpp --data "$data" --model-dir cpp --steps 3 -- --units 8
    grep -q '"net"' cpp/sextant.json || fail 'the model is not named'
    sed 's/sx_flatten(b, in->features)/in->features/' net.cpp >bad.cpp
    fails 1 train ./bad.cpp --data "$data"
    warns 'bad.cpp:5: dense "dense"'
    sed 's/return sx_cl/throw 1; return sx_cl/' net.cpp >bad.cpp
    fails 1 train ./bad.cpp --data "$data"
    warns './bad.cpp: the model function threw an exception that is not a std::exception'
    (echo '#include <stdexcept>'; sed 's/return sx_cl/throw std::runtime_error("no table"); return sx_cl/' net.cpp) >bad.cpp
    fails 1 train ./bad.cpp --data "$data"
    warns './bad.cpp: the model function threw an exception: no table'
    sed 's/sx::build = net, //' net.cpp >bad.cpp
    fails 1 train ./bad.cpp --data "$data"
    warns './bad.cpp: SX_MODEL(...) lacks .build'
fi
CXX=no-such-compiler fails 1 train ./net.cpp --data "$data"
warns 'no C++ compiler: no-such-compiler not found; install one or set CXX'
