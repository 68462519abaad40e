#!/usr/bin/env bash
# A model in C: compiled, cached, loaded; parameters after --; every mistake in the user's words.
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
