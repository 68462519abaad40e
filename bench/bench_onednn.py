"""Two versions of oneDNN, Debian's and the optional one (tools/deps --onednn3), on every convolution and product of
ResNet-50, MobileNetV2, EfficientNetB0, DenseNet121, InceptionV3 and an encoder of BERT-base's shape (128 tokens), with
the activation and the residual sum that follow it, and on the gradients of ResNet-50's. Each version is a process on
one processor; their runs alternate, and the least processor time of each counts.

Printed for each group: the number of shapes that both have, the geometric mean of the ratios (above 1: version 3 is
faster), the least and the greatest, and the ratio of the sums of times, each shape as often as the networks have it.

  TYPES="f32 bf16 bf16_f32 u8 u8_f32"   dtypes (default f32): what is read, _ and the result's
  ISAS="native avx512 avx2"             what oneDNN may use (default native)
  BATCHES="1 16"  NETWORKS="ResNet50 bert"
  KINDS="forward data weights"
  LAYOUTS="ours any"                    NHWC with packed filters; as oneDNN likes, without residual sums
  FORMS=1       of the first version alone: layouts and dtypes side by side, 1x1 convolutions as products, residual sums
                added to what lies in the result
  DETAIL=1      each shape, with GFLOP/s and the kernels' names

Bound by multiplications, and for depthwise and narrow convolutions by the caches (bench_onednn.c)."""

import math
import os
import subprocess
import sys

ROUNDS = int(os.environ.get("ROUNDS", "7"))
SECONDS = float(os.environ.get("SECONDS", "0.003"))  # of a round, for each side


def chosen(name, default):
    return os.environ.get(name, default).split()


TYPES = chosen("TYPES", "f32")
ISAS = chosen("ISAS", "native")
BATCHES = [int(b) for b in chosen("BATCHES", "1")]
NETWORKS = chosen("NETWORKS", "ResNet50 MobileNetV2 EfficientNetB0 DenseNet121 InceptionV3 bert")
KINDS = chosen("KINDS", "forward data weights")
LAYOUTS = chosen("LAYOUTS", "ours")
FORMS = "FORMS" in os.environ
DETAIL = "DETAIL" in os.environ
MAX_ISA = {"native": "ALL", "avx512": "AVX512_CORE", "avx2": "AVX2"}


# ---- Shapes ----

def follow(layer):
    """The activation and whether a residual sum precedes it, behind a convolution."""
    add = 0
    name = getattr(getattr(layer, "activation", None), "__name__", "linear")
    while name == "linear" and len(layer._outbound_nodes) == 1:
        layer = layer._outbound_nodes[0].operation
        kind = type(layer).__name__
        if kind == "Add" and not add:
            add = 1
        elif kind == "ReLU":
            name = "relu6" if layer.max_value == 6 else "relu"
        elif kind == "Activation":
            name = layer.activation.__name__
        elif kind not in ("BatchNormalization", "Dropout"):
            break
    name = {"silu": "swish"}.get(name, name)
    return name if name in ("relu", "relu6", "swish") else "-", add


def convolution(layer):
    """The geometry of a Conv2D or DepthwiseConv2D for one image; padding by a layer before it is its own."""
    def pair(value):
        return (value, value) if isinstance(value, int) else tuple(value)
    given = layer.input
    pads = ((0, 0), (0, 0))
    before = given._keras_history.operation
    if type(before).__name__ == "ZeroPadding2D":
        pads, given = before.padding, before.input
    depthwise = type(layer).__name__ == "DepthwiseConv2D"
    h, w, c = given.shape[1:]
    (kh, kw), (sh, sw) = pair(layer.kernel_size), pair(layer.strides)
    if layer.padding == "same":
        def same(n, k, s):
            total = max((-(-n // s) - 1) * s + k - n, 0)
            return total // 2, total - total // 2
        pads = same(h, kh, sh), same(w, kw, sw)
    channels = (1, 1, c) if depthwise else (c, layer.filters, 1)
    act, add = follow(layer)
    return ("conv", *channels, h, w, kh, kw, sh, sw, *pads[0], *pads[1], act, add)


def shapes_of(network):
    """{shape: how often the network has it}"""
    found = {}
    if network == "bert":
        for shape, times in {("matmul", 0, 128, 768, 768, 0, 0, "-"): 48, ("matmul", 0, 128, 3072, 768, 0, 0, "-"): 12,
                             ("matmul", 0, 128, 768, 3072, 0, 0, "-"): 12, ("matmul", 12, 128, 128, 64, 0, 1, "-"): 12,
                             ("matmul", 12, 128, 64, 128, 0, 0, "-"): 12}.items():
            found[shape] = times
        return found
    import keras
    model = getattr(keras.applications, network)(weights=None)
    for layer in model.layers:
        if type(layer).__name__ in ("Conv2D", "DepthwiseConv2D"):
            shape = convolution(layer)
        elif type(layer).__name__ == "Dense":
            shape = ("matmul", 0, 1, layer.units, layer.input.shape[-1], 0, 0, "-")
        else:
            continue
        found[shape] = found.get(shape, 0) + 1
    return found


def group_of(shape):
    if shape[0] == "matmul":
        return "product"
    c, o, groups, h, w, kh, kw = shape[1:8]
    return ("depthwise" if groups > 1 else "first" if c == 3 else "squeeze 1x1" if (h, w) == (1, 1)
            else "1x1" if (kh, kw) == (1, 1) else "k x k")


def out_of(shape):
    c, o, groups, h, w, kh, kw, sh, sw, top, bottom, left, right = shape[1:14]
    return (h + top + bottom - kh) // sh + 1, (w + left + right - kw) // sw + 1


def flops(shape, batch):
    if shape[0] == "matmul":
        heads, m, n, k = shape[1:5]
        return 2 * batch * max(heads, 1) * m * n * k
    oh, ow = out_of(shape)
    return 2 * batch * shape[3] * shape[1] * shape[2] * shape[6] * shape[7] * oh * ow


def request(shape, batch, kind, types, layout):
    src, _, dst = types.partition("_")
    dst = dst or src
    if shape[0] == "matmul":
        heads, m, *rest = shape[1:]
        stack, rows = (heads * batch, m) if heads else (1, m * batch)
        return " ".join(map(str, ["matmul", src, dst, layout, stack, rows, *rest]))
    act, add = shape[-2:] if kind == "forward" else ("-", 0)
    if layout == "any":
        add = 0  # the other image would have to be laid out alike
    return " ".join(map(str, ["conv", kind, src, dst, layout, batch, *shape[1:-2], act, add]))


# ---- Measuring ----

class Library:
    def __init__(self, program, isa):
        environment = dict(os.environ, OMP_NUM_THREADS="1", ONEDNN_MAX_CPU_ISA=MAX_ISA[isa],
                           DNNL_MAX_CPU_ISA=MAX_ISA[isa])
        path = os.path.join(os.environ["SEXTANT_BUILD"], "bench", program)
        self.process = subprocess.Popen([path, "--serve"], text=True, env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.name = self.process.stdout.readline().strip()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def seconds(self, runs):
        return float(self.ask(f"run {runs}")) / runs


def least(works):
    """The least processor seconds of a run of each of [(library, request)], and the kernels' names. None: one has no
    kernel. Requests of one library must be one: it keeps the last."""
    names = [library.ask(line) for library, line in works]
    if any(name == "none" or name.startswith(("ref", "simple")) for name in names):
        return None, names
    runs = []
    for library, _ in works:
        once = min(library.seconds(1), library.seconds(1))
        runs.append(max(1, min(10000, math.ceil(SECONDS / max(once, 1e-7)))))
    times = [math.inf] * len(works)
    for _ in range(ROUNDS):
        for i, (library, _) in enumerate(works):
            times[i] = min(times[i], library.seconds(runs[i]))
    return times, names


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def report(title, rows):
    """rows: [(how often, time of 2, time of 3)]"""
    if rows:
        ratios = [a / b for _, a, b in rows]
        sums = sum(n * a for n, a, _ in rows) / sum(n * b for n, _, b in rows)
        print(f"{title:58s}{len(rows):4d}  {mean(ratios):5.2f}  ({min(ratios):.2f} … {max(ratios):.2f})  {sums:5.2f}",
              flush=True)


def detail(line, work, names, times):
    rates = "  ".join(f"{work / t / 1e9:7.1f} {name}" for t, name in zip(times, names)) if times else "  ".join(names)
    print(f"    {line:80s} {rates}", flush=True)


def compare(shapes, isa, kind, types, layout, batch, old, new):
    groups = {}
    for (network, shape), times in shapes.items():
        if kind != "forward" and (network != "ResNet50" or shape[0] != "conv"):
            continue
        groups.setdefault(group_of(shape), {}).setdefault(shape, []).append(times)
    for group, members in groups.items():
        rows, missing = [], [0, 0]
        for shape, times in members.items():
            line = request(shape, batch, kind, types, layout)
            seconds, names = least([(old, line), (new, line)])
            if DETAIL:
                detail(line, flops(shape, batch), names, seconds)
            if seconds:
                rows.append((sum(times), *seconds))
            else:
                for i, name in enumerate(names):
                    missing[i] += name == "none" or name.startswith(("ref", "simple"))
        report(f"{isa} {types} {layout} batch {batch}: {kind}, {group}", rows)
        if missing != [0, 0]:
            print(f"    {missing[0]} of {len(members)} only in loops in the first, {missing[1]} in the second")


# ---- Which form of a convolution is the fastest ----

def forms_of(shape, batch, kind):
    """{name: request}: the ways to compute a convolution; products are of 1x1 ones with stride 1."""
    types = ["f32", "bf16_f32", "bf16"] + ["u8_f32", "u8"] * (kind == "forward")
    found = {f"{t} {layout}": request(shape, batch, kind, t, layout) for t in types for layout in ("ours", "any")}
    c, o, groups, h, w, kh, kw, sh, sw = shape[1:10]
    if kind == "forward" and shape[-1]:
        found["f32 ours, sum in place"] = request((*shape[:-1], 2), batch, kind, "f32", "ours")
    if (groups, kh, kw, sh, sw) == (1, 1, 1, 1, 1):
        pixels = batch * h * w
        m, n, k, ta, tb = {"forward": (pixels, o, c, 0, 0), "data": (pixels, c, o, 0, 1),
                           "weights": (c, o, pixels, 1, 0)}[kind]
        found["f32 sgemm"] = f"sgemm 1 {m} {n} {k} {ta} {tb}"
        for src, dst in [("f32", "f32"), ("bf16", "f32")]:
            for layout in ("plain", "ours"):
                name = f"{src} product, {'packed' if layout == 'ours' else 'as it lies'}"
                found[name] = f"matmul {src} {dst} {layout} 1 {m} {n} {k} {ta} {tb} -"
    return found


def forms(shapes, isa, kind, batch, library):
    """Each form's time in those of the first, float32 in our layout, and its rate: geometric means."""
    groups = {}
    for shape in dict.fromkeys(shape for _, shape in shapes if shape[0] == "conv"):
        found = {}
        for form, line in forms_of(shape, batch, kind).items():
            seconds, names = least([(library, line)])
            if seconds:
                found[form] = (seconds[0], flops(shape, batch) / seconds[0] / 1e9)
                if DETAIL:
                    detail(line, flops(shape, batch), names, seconds)
        if "f32 ours" in found:
            groups.setdefault(group_of(shape) + ", residual sum" * (kind == "forward" and shape[-1]), []).append(found)
    for group, rows in groups.items():
        print(f"{isa} batch {batch}: {kind}, {group}: time / that of f32 ours, GFLOP/s (least … greatest)")
        for form in dict.fromkeys(form for found in rows for form in found):
            times = [found[form][0] / found["f32 ours"][0] for found in rows if form in found]
            rates = [found[form][1] for found in rows if form in found]
            print(f"    {form:28s}{len(rates):3d}  {mean(times):5.2f}  {mean(rates):6.0f}"
                  f"  ({min(rates):.0f} … {max(rates):.0f})", flush=True)


def main():
    programs = ["bench_onednn", "bench_onednn3"]
    for program in programs[:1 if FORMS else 2]:
        if not os.path.exists(os.path.join(os.environ["SEXTANT_BUILD"], "bench", program)):
            print(f"SKIP: no {program} (tools/deps --onednn3 installs oneDNN 3; configure again)")
            sys.exit(77)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    shapes = {(network, shape): times for network in NETWORKS for shape, times in shapes_of(network).items()}
    if not FORMS:
        print(f"{'':58s}{'n':>4s}  {'mean':>5s}  {'(least … greatest)':18s}  sum")
    for isa in ISAS:
        libraries = [Library(program, isa) for program in programs[:1 if FORMS else 2]]
        print(f"{isa}: {', '.join(library.name for library in libraries)}")
        for batch in BATCHES:
            for kind in KINDS:
                if FORMS:
                    forms(shapes, isa, kind, batch, *libraries)
                    continue
                for types in TYPES:
                    if kind != "forward" and types.startswith("u8"):
                        continue
                    for layout in LAYOUTS:
                        compare(shapes, isa, kind, types, layout, batch, *libraries)
        print(f"load {os.getloadavg()[0]:.1f}")


main()
