#!/usr/bin/env bash
# tools/check-source reports each kind of mistake in a small made-up checkout, and nothing else.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir"/{tools,cli,src/base,src/io,src/data,src/graph,include/sextant}
cp "$SEXTANT_SRC/tools/layers" "$dir/tools"
printf '%s -> base\n' good.h bare.h >>"$dir/tools/layers"
for layer in base io data graph; do
    echo "# $layer" >"$dir/src/$layer/README.md"
done
cat >"$dir/src/io/good.c" <<'C'
#include "base/map.h"
#include <sextant/status.h>
#include <stdio.h>
/* exit(1) in a comment */
static const char *text = "abort() in a string";
void sx_exit(int code) { table->exit(code); snprintf(0, 0, "%s", text); }
C
echo '#include "graph/ir.h"' >"$dir/cli/main.c"
cat >"$dir/include/sextant/good.h" <<'C'
#include <sextant/status.h>
/* Comment of both. */
SX_API int sx_first(void);
SX_API int sx_second(void);

SX_API int sx_third(int a,
                    int b); /* trailing */
C
cat >"$dir/ARCHITECTURE.md" <<'M'
src/base/    status
src/io/      files
src/data/    datasets
src/graph/   IR
M
python3 "$SEXTANT_SRC/tools/check-source" "$dir"

expect() {
    local file=$1 finding=$2
    if python3 "$SEXTANT_SRC/tools/check-source" "$dir" >"$dir/out"; then
        echo "nothing found, expected: $finding"
        exit 1
    fi
    grep -qF "$finding" "$dir/out" || { echo "expected: $finding, got:"; cat "$dir/out"; exit 1; }
    [ "$(wc -l <"$dir/out")" = 1 ] || { echo "more than one finding:"; cat "$dir/out"; exit 1; }
    rm -r "$file"
}
try() {
    local file=$dir/$1
    printf '%s\n' "$2" >"$file"
    expect "$file" "$3"
}
try src/base/up.c '#include "io/file.h"' 'src/base/up.c:1: base must not include io/file.h'
try src/data/side.c '#include <sextant/graph.h>' 'data must not include sextant/graph.h'
try include/sextant/base.h '#include <sextant/graph.h>' 'base must not include sextant/graph.h'
try include/sextant/infer.h '#include <sextant/train.h>' 'savedmodel must not include sextant/train.h'
try include/sextant/other.h '/* nothing */' 'other.h:1: other.h is in no layer'
try src/data/all.c '#include <sextant/sextant.h>' 'data must not include sextant/sextant.h'
echo 'typedef enum sx_kind { SX_KIND } sx_kind;' >"$dir/src/io/kind.h"
try include/sextant/bare.h '#define sx_kind(x) (x)' 'bare.h:1: sx_kind is also a type (src/io/kind.h)'
try src/io/same.c 'struct sx_one { int a; };
typedef struct sx_kind { int a; } sx_kind;' 'src/io/same.c:2: sx_kind is defined in src/io/kind.h, too'
rm "$dir/src/io/kind.h"
try include/sextant/bare.h '#define sx_open(b, ...) sx_open_at((b), &(sx_open_args){__VA_ARGS__})' 'bare.h:1: write SX_ARGS_(type'
cat >"$dir/include/sextant/sextant.hpp" <<'C'
#undef sx_thing
SX_WITH_OPTIONS_(sx_thing)
C
cat >"$dir/include/sextant/good.h" <<'C'
#define sx_thing(b, ...) sx_thing_at((b), SX_ARGS_(sx_thing_args, __VA_ARGS__))
C
try include/sextant/bare.h '#define sx_other(b, ...) 0' 'sx_other has no form in sextant.hpp'
rm "$dir/include/sextant/sextant.hpp"
try src/io/short.c '#include "good.h"' 'write the path from src'
try src/io/call.c 'int f(void) { return system("x"); }' 'call.c:1: system() is banned here'
try src/io/quit.c 'void f(void) { exit(1); }' 'exit() is banned here'
try cli/copy.c 'void f(void) { strcpy(a, b); }' 'strcpy() is banned here'
try include/sextant/bare.h 'SX_API int sx_bare(void);' 'bare.h:1: sx_bare: no comment'
# Operators: a row and a file each; those of elementwise.def are named nowhere else.
mkdir -p "$dir"/src/graph/{ops,lower/stablehlo}
cp "$SEXTANT_SRC/tools/gen-ops" "$dir/tools"
printf '%s -> graph\n' elementwise.h ops.h >>"$dir/tools/layers"
part() { printf '/* ---- %s, written by tools/gen-ops: do not edit ---- */\n/* ---- End of what tools/gen-ops writes ---- */\n' "$1"; }
part Operators >"$dir/include/sextant/ops.h"
part Attributes >"$dir/src/graph/ops/attrs.h"
{ printf '#define SX_FIELDS_(X)\n\nnamespace sx {\n}\n'; part Operators; } >"$dir/include/sextant/sextant.hpp"
printf '#undef sx_thing\nSX_WITH_OPTIONS_(sx_thing)\n' >>"$dir/include/sextant/sextant.hpp"
echo 'MAP(twice, FLOATS, NULL, ADD(x, x))' >"$dir/src/graph/elementwise.def"
printf '/* others */\nSX_OP(other)\n' >"$dir/src/graph/ops/ops.def"
printf '/* twice: y = 2 x;  dx = 2 dy */\nSX_PUBLIC_MAP(twice)\nconst sx_op_def sx_op_twice = {\n};\n' \
    >"$dir/src/graph/ops/twice.c"
cat >"$dir/src/graph/ops/other.c" <<'C'
/* other: another */
#ifdef SX_PUBLIC
typedef struct sx_other_args {
    size_t struct_size;
    int size; /* not a field: X(comment) */
    void (*fn)(int a, int b);
} sx_other_args;

/* Another. */
sx_value sx_other(sx_builder *b, sx_value x, const sx_other_args *args);

/* Two of them. */
sx_value sx_other_two(sx_builder *b, const sx_value *xs, int n, int axis);
#endif
#ifdef SX_ATTRS
typedef struct sx_other_attrs {
    int64_t size;
} sx_other_attrs;
#endif

const sx_op_def sx_op_other = {
};
C
"$dir/tools/gen-ops"
grep -qx '/\* 2 x \*/' "$dir/include/sextant/elementwise.h"
grep -q '^#define sx_twice(b, x) sx_twice_at((b), (x), SX_HERE_)$' "$dir/include/sextant/elementwise.h"
grep -q '^/\* ---- Others ---- \*/$' "$dir/include/sextant/ops.h"
grep -q '^    int size; /\* not a field' "$dir/include/sextant/ops.h"
tr -d '\\\n' <"$dir/include/sextant/ops.h" | tr -s ' ' >"$dir/out"
grep -qF '/* Another. */SX_API sx_value sx_other_at(sx_builder *b, sx_value x, const sx_other_args *args, const char *file, int line);#define sx_other(b, x, ...) sx_other_at((b), (x), SX_ARGS_(sx_other_args, __VA_ARGS__), SX_HERE_)' "$dir/out"
grep -qF '#define sx_other_two(b, axis, ...) sx_other_two_at((b), SX_VALUES_(__VA_ARGS__), (axis), SX_HERE_)' "$dir/out"
grep -q '^} sx_other_attrs;$' "$dir/src/graph/ops/attrs.h"
grep -q '^SX_BUILDS_(sx_value, sx_other, sx_other_args, (sx_value x), x)$' "$dir/include/sextant/sextant.hpp"
grep -q '^SX_OF_VALUES_(sx_other_two, (int axis), axis)$' "$dir/include/sextant/sextant.hpp"
[ "$(sed -n 2p "$dir/include/sextant/sextant.hpp")" = '    X(fn) X(size)' ]
python3 "$SEXTANT_SRC/tools/check-source" "$dir"
try src/graph/lower/stablehlo/rows.def 'HLO(twice)' 'rows.def:1: operator twice takes 3 files, expected 2'
printf 'HLO(other)\n' >"$dir/src/graph/lower/stablehlo/rows.def" # a target's row
python3 "$SEXTANT_SRC/tools/check-source" "$dir"
try src/graph/attr_operands.c '{SX_OPID_other, AXIS},' 'attr_operands.c:1: operator other takes 3 files, expected 2'
try src/graph/ops/third.c 'const sx_op_def sx_op_third = {' 'operator third has no row in ops.def or elementwise.def'
try src/graph/spmd_new.c 'if (n->op == &sx_op_other) { }' 'spmd_new.c:1: names operator other'
list='a list of operators: make it a fact of their descriptors'
try src/graph/list.c 'static const bool exact[SX_OPID_COUNT] = {[SX_OPID_other] = true};' "list.c:1: $list"
try src/graph/list.c 'switch (id) { case SX_OPID_other: return 1; }' "list.c:1: $list"
try src/graph/list.c 'static const sx_op_def *const all[] = {&sx_op_other, &sx_op_twice};' "list.c:1: $list"
try src/graph/list.c 'bool ends = n->op == &sx_op_other || n->op == &sx_op_twice;' "list.c:1: $list"
echo 'bool f(void) { return n->op == &sx_op_other; } /* &sx_op_other, &sx_op_twice */' >"$dir/src/graph/one.c"
python3 "$SEXTANT_SRC/tools/check-source" "$dir"
rm "$dir/src/graph/one.c"
mkdir -p "$dir/src/graph/passes"
try src/graph/passes/freeze.c '/* none */' 'freeze.c:1: 0 matches of OPERATOR_LIST, 5 in tools/check-source: lower it'
rmdir "$dir/src/graph/passes"
mkdir -p "$dir/src/backends/pjrt"
echo '# backends' >"$dir/src/backends/README.md"
echo 'src/backends/   devices' >>"$dir/ARCHITECTURE.md"
try src/backends/backend.h 'int f(int op) { return op == SX_OPID_twice; }' 'backend.h:1: names operator twice'
try src/backends/pjrt/execute.c 'f(&sx_op_other); /* sx_op_twice */' 'execute.c:1: names operator other'
rm -r "$dir/src/backends"
sed -i /backends/d "$dir/ARCHITECTURE.md"
mkdir "$dir/src/savedmodel"
echo '# savedmodel' >"$dir/src/savedmodel/README.md"
echo 'src/savedmodel/   models' >>"$dir/ARCHITECTURE.md"
echo '    {"Empty", import_empty, NULL},' >"$dir/src/savedmodel/import_library_a.c"
try src/savedmodel/import_library_b.c '    {"Empty", import_none, NULL},' \
    'Empty is imported in src/savedmodel/import_library_a.c:1, too'
rm -r "$dir/src/savedmodel"
sed -i /savedmodel/d "$dir/ARCHITECTURE.md"
cp "$dir/src/graph/ops/ops.def" "$dir/kept.def"
try src/graph/ops/ops.def '/* others */
SX_OP(other) /*
SX_OP(fourth)
*/' 'operator fourth has no file in ops/'
try src/graph/ops/ops.def '/* others */
SX_OP(other)
SX_COMPOSED(fifth)' 'function fifth has no file in ops/'
mv "$dir/kept.def" "$dir/src/graph/ops/ops.def"
stale() { # file, what is put in place of what
    cp "$dir/$1" "$dir/kept.h"
    sed -i "s/$2/$3/" "$dir/$1"
    cp "$dir/$1" "$dir/broken.h"
    expect "$dir/broken.h" "$1:1: differs from the operators and options: run tools/gen-ops"
    mv "$dir/kept.h" "$dir/$1"
}
stale include/sextant/elementwise.h 'sx_value x' 'sx_value y'
stale include/sextant/ops.h 'Another' 'One'
stale src/graph/ops/attrs.h 'int64_t' 'int'
stale include/sextant/sextant.hpp 'X(fn) ' ''
rm -r "$dir"/src/graph/{elementwise.def,ops,lower} "$dir/tools/gen-ops" "$dir"/include/sextant/{ops.h,sextant.hpp}
git -C "$dir" init -q
git -C "$dir" add cli src
python3 "$SEXTANT_SRC/tools/check-source" "$dir"
touch "$dir/terminal.py" "$dir/build" # one is tracked, the other is not
git -C "$dir" add terminal.py
expect "$dir/terminal.py" 'terminal.py:1: unexpected at the top of the checkout'
rm -r "$dir/.git" "$dir/build"
mkdir "$dir/src/image"
try src/image/README.md '# image' 'src/image/ is not in the module list'
rmdir "$dir/src/image"
rm "$dir/src/graph/README.md"
printf 'x\n' >"$dir/cli/x.c"
expect "$dir/cli/x.c" 'no README.md'
