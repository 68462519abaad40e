#!/usr/bin/env bash
# tools/demo from beginning to end, on a handful of photographs in an archive.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
photos 30
mkdir -p given/flowers
tar cf given/flowers/all.tar -C photos daisy rose tulip
export SEXTANT_DATA=$here/given DEMO_DIR=$here/demo DEMO_EPOCHS=1
ran='demo'
code=0
"$SEXTANT_SRC/tools/demo" >out 2>err || code=$?
[ "$code" = 0 ] || fail 'it failed'
says "Photographs from $here/given/flowers"
says 'data/train: 72 records in 4 files'
says_line 'Training for 3 steps (1 epoch in total). Current step 0.'
says '"examples": 9'
says_line 'models/flowers/1'
grep -qE '^photos/(daisy|rose|tulip)/.*: (daisy|rose|tulip) [0-9.]+ %$' out || fail 'no answer'
says 'Try next'
