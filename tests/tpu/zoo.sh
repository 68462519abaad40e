# Compiles a model of the zoo at batch 1024 on tpu:v5e:2x2 and looks at the figures. Figures that are
# in the user's cache are not computed again. MODELS="a b" takes those alone.
zoo_model() { # MODEL OPTIONS...
    local model=$1 out
    shift
    out=$(mktemp)
    if ! "$SEXTANT_BIN" compile "$model" --target tpu:v5e:2x2 --batch-size 1024 --json "$@" >"$out"; then
        echo "$model: FAILED"
        return 1
    fi
    python3 - "$out" "$model" <<'P'
import json, sys
r = json.load(open(sys.argv[1]))
m, p = r['memory'], r['padding']
assert r['fits'] and r['devices'] == 4 and r['device_kind'] == 'TPU v5 lite', r
assert r['hosts'] == [{'devices': 4, 'first_example': 0, 'examples': 1024}], r['hosts']
assert 0 < m['total_bytes'] <= m['limit_bytes'] and m['code_bytes'] > 0, m
assert m['argument_bytes'] > 0 and m['temporary_bytes'] > 0 and r['flops'] > 0, m
assert p['values']['padded_bytes'] >= p['values']['bytes'] > 0 and len(r['layers']) > 0, p
def mib(b): return f'{b / 2**20:,.1f}'
print(f"{sys.argv[2]}: per device MiB: arguments {mib(m['argument_bytes'])}, outputs {mib(m['output_bytes'])} "
      f"({mib(m['alias_bytes'])} over arguments), temporaries {mib(m['temporary_bytes'])}, "
      f"code {mib(m['code_bytes'])}; total {mib(m['total_bytes'])} of {mib(m['limit_bytes'])}; "
      f"{r['flops'] * 1e-9:,.2f} GFLOP, {r['seconds_at_peak'] * 1e3:.3g} ms at peak; padding "
      f"{100 * (1 - p['values']['bytes'] / p['values']['padded_bytes']):.0f} % of values; largest layer "
      f"{r['layers'][0]['name']}; largest batch {r.get('largest_batch', 'not searched for')}; "
      f"compiled in {r['compile_seconds']:.0f} s")
P
    local ok=$?
    rm -f "$out"
    return $ok
}
