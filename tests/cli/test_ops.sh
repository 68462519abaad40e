#!/usr/bin/env bash
# ops: the table of operators, and what of a SavedModel is supported.
. "$SEXTANT_SRC/tests/cli/lib.sh"
ok ops
grep -qE '^operator +host +cpu +pjrt +gradient +to TF +from TensorFlow$' out || fail 'heading'
grep -qE '^matmul +yes +yes +yes +yes +yes +MatMul' out || fail 'matmul'
grep -qE '^floor +yes +yes +yes +zero ' out || fail 'floor'
grep -qE '^where +yes +yes +- ' out || fail 'where'
grep -qE '^as_string +yes +- +- ' out || fail 'as_string'
grep -qE '^resize_image +yes +yes +- ' out || fail 'resize_image has a typed kernel'
grep -qE '^reshape +yes +yes ' out || fail 'reshape is a view'
says 'StridedSlice'
ok train linear --data generated:digits --model-dir run --steps 1
ok export run --out m
ok ops m
grep -qE '^MatMul +[0-9]+  yes$' out || fail 'MatMul'
grep -qE '^[0-9]+ of [0-9]+ operators, [0-9]+ of [0-9]+ nodes$' out || fail 'sum'
says_line 'signature serving_default: supported'
says_line 'signature tensors: supported'
says_line '2 of 2 signatures can be run'
! grep -qE '^[A-Za-z0-9]+ +[0-9]+  no$' out || fail 'an operator of a signature that is supported'
fails 1 ops missing
warns 'missing'
fails 1 ops while
warns 'while is an operator, described by sextant-operators(7)'
