"""Models with the habits of those who write them: slices of variables that are assigned, losses of detectors, loops that
grow, signatures of odd types, sketches of published networks in plain TensorFlow."""
import numpy as np
import tensorflow as tf
import keras
from keras import layers as L

from corpus.functions import ROWS, function
from corpus.keras_layers import save
from corpus.modules import fixed, spec, weights
from corpus.rows import DEEP, row
from corpus.tasks import only

F32, F64, I32, I64, U8, STRING, BOOL = tf.float32, tf.float64, tf.int32, tf.int64, tf.uint8, tf.string, tf.bool


class Cached(tf.Module):
    def __init__(self):
        super().__init__()
        self.k = tf.Variable(tf.zeros([2, 6, 4]))
        self.at = tf.Variable(0)
        self.w = weights(1, 4, 12)

    @tf.function(input_signature=[spec("x", F32, 2, 4)])
    def f(self, x):
        """A step of attention: its key is written where the counter stands."""
        q, k, v = tf.split(x @ self.w, 3, -1)
        i = self.at % 6
        self.k[:, i].assign(k)
        scores = tf.einsum("bd,btd->bt", q, self.k)
        scores = tf.where(tf.range(6)[None] <= i, scores, -1e9)
        self.at.assign_add(1)
        return {"y": tf.einsum("bt,btd->bd", tf.nn.softmax(scores), self.k) + v, "at": self.at.read_value()}


@row(feed=lambda rng, n: {"x": rng.normal(size=(2, 4))}, batches=tuple(range(8)), sample=True)
def habit_cache_in_variable(path):
    m = Cached()
    tf.saved_model.save(m, path, signatures=m.f)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 6)), "i": n}, batches=(1, 2, 3), sample=True)
def habit_slices_of_variables(path):
    """Slices with steps, of one element, of whole rows, with new axes and an ellipsis, assigned in turn."""
    m = tf.Module()
    m.v = tf.Variable(fixed(1, 5, 6))
    m.n = tf.Variable(tf.zeros([4], I64))
    @tf.function(input_signature=[spec("x", F32, None, 6), spec("i", I32)])
    def f(x, i):
        m.v[1:4:2, ::3].assign(x[:1, :2] * tf.ones([2, 2]))
        m.v[i].assign(x[0])
        m.v[..., -1].assign(tf.range(5.0))
        m.v[4, ::-1].assign(x[-1])
        m.n[i].assign(tf.cast(i, I64) + m.n[i])
        return {"v": m.v.read_value(), "n": m.n.read_value()}
    only(path, m, f)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 3)), "reset": n == 3}, batches=(1, 3, 4))
def habit_ring_of_rows(path):
    m = tf.Module()
    m.rows, m.at = tf.Variable(tf.zeros([5, 3])), tf.Variable(0, dtype=I64)
    @tf.function(input_signature=[spec("x", F32, None, 3), spec("reset", BOOL)])
    def f(x, reset):
        if reset:
            m.rows[:].assign(tf.zeros([5, 3]))
        for r in x:
            m.rows[m.at % 5].assign(r)
            m.at.assign_add(1)
        return {"mean": tf.reduce_mean(m.rows, 0), "rows": m.rows + 0, "at": m.at + 0}
    only(path, m, f)


@row(batches=(1, 3, 32), sizes=[(64, 64), (96, 64)], tolerance=DEEP)
def habit_yolo(path):
    """YOLOv3 as it is written on many pages: anchors of three scales, decoded with exp and sigmoid."""
    def conv(x, f, k, s=1):
        x = L.ZeroPadding2D(((1, 0), (1, 0)))(x) if s == 2 else x
        x = L.Conv2D(f, k, s, "valid" if s == 2 else "same", use_bias=False)(x)
        return L.LeakyReLU(negative_slope=0.1)(L.BatchNormalization(epsilon=1e-3)(x))
    x = keras.Input((None, None, 3))
    y = conv(x, 8, 3)
    outs = []
    for f in 8, 12, 16:
        y = conv(y, f, 3, 2)
        y = y + conv(conv(y, f // 2, 1), f, 3)
        outs.append(y)
    top = conv(outs[-1], 8, 1)
    up = L.Concatenate()([L.UpSampling2D(2)(top), outs[-2]])
    boxes = []
    anchors = np.array([[[10, 13], [16, 30]], [[30, 61], [62, 45]]], "float32")

    def decode(y, a):
        s = tf.shape(y)
        y = tf.reshape(y, [s[0], s[1], s[2], 2, 8])
        grid = tf.expand_dims(tf.stack(tf.meshgrid(tf.range(s[2]), tf.range(s[1])), -1), 2)
        xy = (tf.sigmoid(y[..., 0:2]) + tf.cast(grid, F32)) / tf.cast(tf.stack([s[2], s[1]]), F32)
        wh = tf.exp(y[..., 2:4]) * a / 64
        box = tf.concat([xy - wh / 2, xy + wh / 2], -1)
        return tf.concat([tf.reshape(box, [s[0], -1, 4]), tf.reshape(tf.sigmoid(y[..., 4:]), [s[0], -1, 4])], -1)
    for z, a in zip((top, up), anchors):
        boxes.append(L.Lambda(decode, arguments={"a": a}, output_shape=(None, 8))(L.Conv2D(16, 1)(z)))
    m = keras.Model(x, L.Concatenate(axis=1)(boxes))

    mod = tf.Module()
    mod.m = m
    @tf.function(input_signature=[spec("image", F32, None, None, None, 3)])
    def f(image):
        b = m(image)
        r = tf.image.combined_non_max_suppression(b[:, :, None, :4], b[..., 4:5] * b[..., 5:], 20, 30, 0.5, 0.2)
        idx, score = tf.image.non_max_suppression_with_scores(b[0, :, :4], b[0, :, 4], 10, 0.5, 0.2, 0.3)
        return {"boxes": r[0], "scores": r[1], "classes": r[2], "n": r[3], "first": tf.gather(b[0], idx), "soft": score}
    only(path, mod, f)


@row(feed=lambda rng, n: {"logits": rng.normal(size=(n, 12, 4)), "boxes": rng.normal(size=(n, 12, 4)), "labels": rng.integers(-1, 5, (n, 12)),
                          "targets": rng.normal(size=(n, 12, 4))})
def habit_retina_losses(path):
    """Focal loss, smooth L1, GIoU and their gradients."""
    m = tf.Module()
    @tf.function(input_signature=[spec("logits", F32, None, None, 4), spec("boxes", F32, None, None, 4), spec("labels", I32, None, None),
                                  spec("targets", F32, None, None, 4)])
    def f(logits, boxes, labels, targets):
        with tf.GradientTape() as t:
            t.watch([logits, boxes])
            hot = tf.one_hot(labels, 4)
            ce = tf.nn.sigmoid_cross_entropy_with_logits(hot, logits)
            p = tf.nn.sigmoid(logits)
            alpha = tf.where(tf.equal(hot, 1.), .25, .75)
            pt = tf.where(tf.equal(hot, 1.), p, 1 - p)
            focal = tf.reduce_sum(alpha * tf.pow(1. - pt, 2.) * ce, -1)
            d = tf.abs(targets - boxes)
            l1 = tf.reduce_sum(tf.where(tf.less(d, 1.), .5 * d ** 2, d - .5), -1)
            lo, hi = tf.minimum(boxes[..., :2], boxes[..., 2:]), tf.maximum(boxes[..., :2], boxes[..., 2:])
            tlo, thi = tf.minimum(targets[..., :2], targets[..., 2:]), tf.maximum(targets[..., :2], targets[..., 2:])
            inter = tf.reduce_prod(tf.maximum(tf.minimum(hi, thi) - tf.maximum(lo, tlo), 0), -1)
            union = tf.reduce_prod(hi - lo, -1) + tf.reduce_prod(thi - tlo, -1) - inter
            hull = tf.reduce_prod(tf.maximum(hi, thi) - tf.minimum(lo, tlo), -1)
            giou = tf.math.divide_no_nan(inter, union) - tf.math.divide_no_nan(hull - union, hull)
            positive, ignore = tf.cast(labels >= 0, F32), tf.cast(tf.equal(labels, -1), F32)
            n = tf.maximum(tf.reduce_sum(positive, -1), 1)
            loss = tf.math.divide_no_nan(tf.reduce_sum(tf.where(ignore == 1, 0., focal), -1), n) + tf.reduce_sum(tf.boolean_mask(l1, positive > 0)) + tf.reduce_mean(1 - giou)
        g = t.gradient(loss, [logits, boxes])
        return {"loss": loss, "gl": g[0], "gb": g[1]}
    only(path, m, f)


@row(feed=lambda rng, n: {"x": rng.integers(0, 50, (n, 12)), "temperature": 0.7, "steps": 6}, tolerance=DEEP)
def habit_gpt_in_plain_tensorflow(path):
    """GPT-2 from its variables by name, a greedy loop whose sequence grows, top-p masks."""
    m = tf.Module()
    H, D = 2, 8
    m.p = {k: weights(i, *s) for i, (k, s) in enumerate({"wte": (50, D), "wpe": (40, D), "qkv": (D, 3 * D), "o": (D, D), "fc": (D, 4 * D), "pr": (4 * D, D)}.items())}
    def norm(x):
        u = tf.reduce_mean(x, -1, keepdims=True)
        s = tf.reduce_mean(tf.square(x - u), -1, keepdims=True)
        return (x - u) * tf.math.rsqrt(s + 1e-5)
    def gelu(x):
        return 0.5 * x * (1 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))
    def net(x):
        n = tf.shape(x)[1]
        h = tf.gather(m.p["wte"], x) + tf.gather(m.p["wpe"], tf.range(n))
        q, k, v = [tf.transpose(tf.reshape(t, [-1, n, H, D // H]), [0, 2, 1, 3]) for t in tf.split(tf.tensordot(norm(h), m.p["qkv"], 1), 3, 2)]
        w = tf.matmul(q, k, transpose_b=True) * tf.math.rsqrt(tf.cast(v.shape[-1], F32))
        i, j = tf.range(n)[:, None], tf.range(n)
        b = tf.reshape(tf.cast(i >= j, F32), [1, 1, n, n])
        w = tf.nn.softmax(w * b - 1e10 * (1 - b))
        h += tf.tensordot(tf.reshape(tf.transpose(w @ v, [0, 2, 1, 3]), [-1, n, D]), m.p["o"], [[2], [0]])
        h += tf.tensordot(gelu(tf.tensordot(norm(h), m.p["fc"], 1)), m.p["pr"], 1)
        return tf.einsum("btd,vd->btv", norm(h), m.p["wte"])
    @tf.function(input_signature=[spec("x", I32, None, None), spec("temperature", F32), spec("steps", I32)])
    def f(x, temperature, steps):
        def body(x, ended, total):
            logits = net(x)[:, -1] / temperature
            s = tf.sort(logits, direction="DESCENDING", axis=-1)
            cum = tf.cumsum(tf.nn.softmax(s), -1, exclusive=True)
            kept = tf.where(cum < 0.8, s, tf.ones_like(s) * 1e10)
            logits = tf.where(logits < tf.reduce_min(kept, 1, keepdims=True), -1e10, logits)
            t = tf.argmax(logits, -1, output_type=I32)
            return tf.concat([x, t[:, None]], 1), ended | (t == 7), total + tf.reduce_max(tf.nn.log_softmax(logits), -1)
        n = tf.shape(x)[0]
        y, ended, total = tf.while_loop(lambda y, e, _: ~tf.reduce_all(e), body, [x, tf.zeros([n], BOOL), tf.zeros([n])],
                                        shape_invariants=[tf.TensorShape([None, None]), tf.TensorShape([None]), tf.TensorShape([None])], maximum_iterations=steps)
        return {"y": y, "ended": ended, "score": total}
    only(path, m, f)


@row(feed=lambda rng, n: {"source": rng.integers(1, 20, (n, 6)), "beams": 3})
def habit_beam_search(path):
    """The beam search of the official models: gather of beams, penalties of length, finished and alive sequences."""
    m = tf.Module()
    m.e, m.w = weights(1, 20, 20), weights(2, 20, 20)
    @tf.function(input_signature=[spec("source", I32, None, None), spec("beams", I32)])
    def f(source, beams):
        n = tf.shape(source)[0]
        context = tf.reduce_mean(tf.gather(m.e, source), 1)
        seq = tf.zeros([n, beams, 1], I32)
        logp = tf.tile(tf.concat([[[0.]], tf.fill([1, beams - 1], -np.inf)], 1), [n, 1])
        done = tf.zeros([n, beams], BOOL)
        i = tf.constant(0)
        while i < 7 and not tf.reduce_all(done):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(seq, tf.TensorShape([None, None, None])), (logp, tf.TensorShape([None, None])), (done, tf.TensorShape([None, None]))])
            step = tf.nn.log_softmax(tf.gather(m.w, seq[:, :, -1]) + context[:, None] + tf.cast(i, F32) / 10)
            step = tf.where(done[..., None], tf.where(tf.range(20) == 3, 0., -np.inf), step)
            both = tf.reshape(logp[..., None] + step, [n, -1])
            logp, flat = tf.math.top_k(both, beams)
            beam, token = flat // 20, flat % 20
            seq = tf.concat([tf.gather(seq, beam, batch_dims=1), token[..., None]], -1)
            done = tf.gather(done, beam, axis=1, batch_dims=1) | (token == 3)
            i += 1
        lengths = tf.reduce_sum(tf.cast(seq != 3, F32), -1)
        best = tf.argmax(logp / tf.pow((5 + lengths) / 6, 0.6), 1)
        return {"y": tf.gather(seq, best, batch_dims=1), "all": seq, "score": logp, "steps": i}
    only(path, m, f)


@row(feed=lambda rng, n: {"frames": np.clip(rng.normal(size=(n, 1600)) / 3, -1, 1)}, tolerance=DEEP)
def habit_speech_features(path):
    """Pre-emphasis, log mel with deltas, normalised per utterance."""
    m = tf.Module()
    @tf.function(input_signature=[spec("frames", F32, None, None)])
    def f(frames):
        x = tf.concat([frames[:, :1], frames[:, 1:] - 0.97 * frames[:, :-1]], 1)
        s = tf.signal.stft(x, 400, 160, 512, lambda n, dtype: tf.signal.hamming_window(n, True, dtype), pad_end=True)
        mel = tf.tensordot(tf.abs(s) ** 2, tf.signal.linear_to_mel_weight_matrix(20, 257, 16000, 20., 7600.), 1)
        log = tf.math.log(tf.maximum(mel, 1e-10)) / tf.math.log(10.)
        log = tf.maximum(log, tf.reduce_max(log, [1, 2], keepdims=True) - 8)
        mfcc = tf.signal.mfccs_from_log_mel_spectrograms(log)[..., :13]
        pad = tf.pad(mfcc, [[0, 0], [2, 2], [0, 0]], "SYMMETRIC")
        delta = (pad[:, 4:] - pad[:, :-4]) * 0.2 + (pad[:, 3:-1] - pad[:, 1:-3]) * 0.1
        mean, var = tf.nn.moments(mfcc, [1], keepdims=True)
        low = s[:, :, 3:5]
        # the angle of a small number is mostly its rounding: TensorFlow's own cosine is off by 1.1e-4 of the exact one
        phase = tf.cos(tf.math.angle(low)) * tf.minimum(tf.abs(low), 1)
        back = tf.signal.inverse_stft(s, 400, 160, 512, tf.signal.inverse_stft_window_fn(160, lambda n, dtype: tf.signal.hamming_window(n, True, dtype)))
        return {"mfcc": (mfcc - mean) / tf.sqrt(var + 1e-6), "delta": delta, "phase": phase, "back": back[:, 200:-400]}
    only(path, m, f)


@row(batches=(1, 3, 32), sizes=[(8, 8), (12, 16)], tolerance=DEEP)
def habit_gan_generator(path):
    """StyleGAN's parts: modulated convolutions by groups, noise from a seed, upfirdn, equalised weights."""
    m = tf.Module()
    m.w, m.s = fixed(1, 3, 3, 4, 6), weights(2, 4, 4)
    @tf.function(input_signature=[spec("x", F32, None, None, None, 4)])
    def f(x):
        n, h, w = tf.unstack(tf.shape(x)[:3])
        style = tf.reduce_mean(x, [1, 2]) @ m.s + 1
        ww = m.w[None] * style[:, None, None, :, None]
        ww *= tf.math.rsqrt(tf.reduce_sum(ww ** 2, [1, 2, 3], keepdims=True) + 1e-8)
        y = tf.reshape(tf.transpose(x, [1, 2, 0, 3]), [1, h, w, n * 4])
        k = tf.reshape(tf.transpose(ww, [1, 2, 0, 3, 4]), [3, 3, n * 4, 6])
        y = tf.nn.depthwise_conv2d(y, k, [1, 1, 1, 1], "SAME")
        y = tf.reduce_sum(tf.reshape(y, [h, w, n, 4, 6]), 3)
        y = tf.transpose(y, [2, 0, 1, 3])
        y = y + 0.1 * tf.random.stateless_normal([n, h, w, 1], [3, 4])
        y = tf.nn.leaky_relu(y, 0.2) * np.sqrt(2)
        y = tf.reshape(tf.tile(y[:, :, None, :, None], [1, 1, 2, 1, 2, 1]), [n, h * 2, w * 2, 6])
        fir = tf.constant(np.outer([1, 3, 3, 1], [1, 3, 3, 1]) / 64., F32)
        y = tf.nn.conv2d(tf.transpose(y, [0, 1, 2, 3]), tf.eye(6)[None, None] * fir[..., None, None], 1, "SAME")
        return {"y": tf.clip_by_value(y, -1, 1), "u8": tf.saturate_cast((y + 1) * 127.5, U8)}
    only(path, m, f)


@row(feed=lambda rng, n: {"q": rng.normal(size=(n, 8)), "k": 5})
def habit_index_by_angle(path):
    """A retrieval index: exact top-k by tiles of candidates, names of a table, scores masked by what was seen."""
    m = tf.Module()
    m.c = weights(4, 100, 8)
    m.names = tf.Variable([f"item {i:03}" for i in range(100)])
    @tf.function(input_signature=[spec("q", F32, None, 8), spec("k", I32)])
    def f(q, k):
        q = tf.math.l2_normalize(q, -1)
        best_s, best_i = tf.zeros([tf.shape(q)[0], 0]), tf.zeros([tf.shape(q)[0], 0], I32)
        for start in tf.range(0, 100, 30):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(best_s, tf.TensorShape([None, None])), (best_i, tf.TensorShape([None, None]))])
            tile = m.c[start:start + 30]
            s, i = tf.math.top_k(tf.matmul(q, tile, transpose_b=True), k)
            s, i = tf.concat([best_s, s], 1), tf.concat([best_i, i + start], 1)
            best_s, o = tf.math.top_k(s, k)
            best_i = tf.gather(i, o, batch_dims=1)
        return {"scores": best_s, "names": tf.gather(m.names, best_i), "ids": tf.strings.to_number(tf.strings.substr(tf.gather(m.names, best_i), 5, 3), I32)}
    only(path, m, f)


@row(feed=lambda rng, n: {"x": rng.choice([b"The quick brown fox", b"jumps; over!", b"", b"caf\xc3\xa9 42"], n)})
def habit_text_by_hand(path):
    m = tf.Module()
    m.table = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(["the", "quick", "fox", "[UNK]"], tf.range(4, dtype=I64)), 3)
    m.idf = fixed(5, 7)
    @tf.function(input_signature=[spec("x", STRING, None)])
    def f(x):
        t = tf.strings.lower(x, encoding="utf-8")
        t = tf.strings.regex_replace(t, r"([^\w\s]|\d)", r" \1 ")
        t = tf.strings.split(tf.strings.strip(tf.strings.regex_replace(t, r"\s+", " ")), " ")
        grams = tf.strings.ngrams(t, (1, 2), separator="_")
        i = tf.ragged.map_flat_values(m.table.lookup, t)
        counts = tf.math.bincount(i, minlength=7, maxlength=7, axis=-1)
        counts = tf.sparse.to_dense(counts) if isinstance(counts, tf.SparseTensor) else counts
        tfidf = tf.math.l2_normalize(tf.cast(counts, F32) * m.idf, 1)
        chars = tf.strings.unicode_split(x, "UTF-8")
        codes = tf.strings.unicode_decode(x, "UTF-8").to_tensor(-1)
        return {"grams": grams.to_tensor("-"), "ids": i.to_tensor(9, shape=[None, 6]), "tfidf": tfidf, "n": chars.row_lengths(), "codes": codes,
                "joined": tf.strings.reduce_join(chars[:, ::-1], axis=-1), "hash": tf.strings.to_hash_bucket_strong(x, 100, [1, 2]),
                "starts": tf.strings.regex_full_match(x, "The.*"), "len": tf.strings.length(x, "UTF8_CHAR"), "up": tf.strings.upper(x),
                "script": tf.strings.unicode_script(codes), "last": t[:, -1:].to_tensor("none"), "bounds": t.row_splits}
    only(path, m, f)


@row(feed=lambda rng, n: {"h": rng.normal(size=(n + 4, 5)), "src": rng.integers(0, n + 4, 3 * n), "dst": np.sort(rng.integers(0, n + 4, 3 * n)),
                          "graph": np.sort(rng.integers(0, 2, n + 4))})
def habit_graph_network(path):
    m = tf.Module()
    m.w, m.a = weights(6, 5, 5), weights(7, 10, 1)
    @tf.function(input_signature=[spec("h", F32, None, 5), spec("src", I64, None), spec("dst", I64, None), spec("graph", I64, None)])
    def f(h, src, dst, graph):
        n = tf.shape(h)[0]
        z = h @ m.w
        e = tf.nn.leaky_relu(tf.concat([tf.gather(z, src), tf.gather(z, dst)], 1) @ m.a)[:, 0]
        mx = tf.math.unsorted_segment_max(e, dst, n)
        w = tf.exp(e - tf.gather(mx, dst))
        w = w / tf.gather(tf.math.unsorted_segment_sum(w, dst, n), dst)
        y = tf.math.unsorted_segment_sum(w[:, None] * tf.gather(z, src), dst, n)
        deg = tf.math.bincount(tf.cast(dst, I32), minlength=n, maxlength=n)
        adj = tf.scatter_nd(tf.stack([src, dst], 1), tf.ones_like(src, F32), tf.cast(tf.stack([n, n]), I64))
        sp = tf.sparse.reorder(tf.SparseTensor(tf.stack([dst, src], 1), tf.ones_like(src, F32), tf.cast(tf.stack([n, n]), I64)))
        hops = tf.sparse.sparse_dense_matmul(sp, h)
        u, idx, c = tf.unique_with_counts(src)
        return {"y": y, "pool": tf.math.segment_mean(y, graph), "deg": deg, "adj": adj @ h, "hops": hops, "min": tf.math.segment_min(y, graph),
                "u": u, "idx": idx, "c": c, "sq": tf.math.unsorted_segment_sqrt_n(y, graph, 2), "sm": tf.sparse.reduce_sum(sp, 1),
                "top": tf.math.segment_prod(tf.ones_like(y), graph)}
    only(path, m, f)


@row(batches=(1, 3))
def habit_odd_types(path):
    """Types that few signatures have, and a scalar in and out of each."""
    m = tf.Module()
    types = [tf.bool, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.uint32, tf.uint64, tf.float16, tf.bfloat16, tf.complex64, tf.complex128, tf.float64]
    @tf.function(input_signature=[spec(t.name, t, None) for t in types] + [spec("s", F32)])
    def f(*a):
        out = {}
        for t, x in zip(types, a):
            out["o_" + t.name] = tf.logical_not(x) if t == tf.bool else x * tf.cast(3, t) + x
            out["r_" + t.name] = tf.reduce_any(x) if t == tf.bool else tf.reduce_sum(x)
        out["s"] = a[-1] * 2
        out["c"] = tf.cast(a[0], tf.float16) + tf.cast(a[1], tf.float16)
        return out
    only(path, m, f)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 4, 4)), "y": rng.normal(size=(n, 4))})
def habit_linear_algebra(path):
    m = tf.Module()
    @tf.function(input_signature=[spec("x", F64, None, 4, 4), spec("y", F64, None, 4)])
    def f(x, y):
        spd = tf.matmul(x, x, transpose_b=True) + 2 * tf.eye(4, dtype=F64)
        l = tf.linalg.cholesky(spd)
        w, v = tf.linalg.eigh(spd)
        s, u, vt = tf.linalg.svd(x)
        q, r = tf.linalg.qr(x)
        lu, p = tf.linalg.lu(x)
        kron = tf.reshape(tf.einsum("bij,bkl->bikjl", x, x), [-1, 16, 16])
        op = tf.linalg.LinearOperatorFullMatrix(spd, is_positive_definite=True, is_self_adjoint=True)
        return {"solve": tf.linalg.cholesky_solve(l, y[..., None]), "w": w, "vv": tf.matmul(v * w[:, None], v, transpose_b=True), "s": s,
                "usv": tf.matmul(u * s[:, None], vt, adjoint_b=True), "qr": q @ r, "lu": tf.linalg.lu_reconstruct(lu, p), "det": tf.linalg.det(x),
                "logdet": op.log_abs_determinant(), "lsq": tf.linalg.lstsq(x, y[..., None], 0.1), "expm": tf.linalg.expm(x / 3), "pinv": tf.linalg.pinv(x),
                "tri": tf.linalg.triangular_solve(l, y[..., None], adjoint=True), "band": tf.linalg.band_part(x, 1, -1), "trace": tf.linalg.trace(kron),
                "logm": tf.linalg.logm(tf.cast(spd, tf.complex128)), "sqrtm": tf.linalg.sqrtm(spd), "slog": tf.linalg.slogdet(x)[1], "norm": tf.norm(x, axis=[1, 2]),
                "cross": tf.linalg.cross(y[:, :3], y[:, 1:]), "diag": tf.linalg.diag(y, k=1), "toep": tf.linalg.LinearOperatorToeplitz(y, y).to_dense(),
                "gn": tf.linalg.global_norm([x, y]), "tds": tf.linalg.tridiagonal_solve(tf.stack([y, y + 9, y], 1), y), "inv": op.solve(tf.eye(4, batch_shape=[tf.shape(x)[0]], dtype=F64))}
    only(path, m, f)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 5, 3)), "n": 3}, tolerance=DEEP)
def habit_higher_order(path):
    """map_fn, scan, foldl and vectorized_map with structures."""
    m = tf.Module()
    m.w = weights(8, 3, 3)
    @tf.function(input_signature=[spec("x", F32, None, 5, 3), spec("n", I32)])
    def f(x, n):
        a, b = tf.map_fn(lambda e: (tf.reduce_sum(e[0] * e[1]), e[0][:, :1] > 0), (x, x + 1), fn_output_signature=(F32, BOOL))
        c = tf.scan(lambda s, e: {"h": tf.tanh(e @ m.w + s["h"]), "n": s["n"] + 1}, tf.transpose(x, [1, 0, 2]), {"h": tf.zeros_like(x[:, 0]), "n": tf.constant(0)})
        d = tf.foldl(lambda s, e: s * 0.5 + e, x)
        e = tf.foldr(lambda s, e: s - e, x)
        g = tf.vectorized_map(lambda r: tf.linalg.matvec(m.w, r[0]) * tf.reduce_max(r), x)
        jac = None
        with tf.GradientTape() as t:
            t.watch(x)
            z = tf.tanh(x @ m.w)[:, :, 0]
        jac = t.batch_jacobian(z, x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            with tf.GradientTape() as t2:
                t2.watch(x)
                e2 = tf.reduce_sum(tf.sin(x) ** 3)
            g1 = t2.gradient(e2, x)
        hess = t1.gradient(g1, x)
        rag = tf.map_fn(lambda k: tf.range(k), tf.range(n), fn_output_signature=tf.RaggedTensorSpec([None], I32))
        rev = tf.scan(lambda s, e: s + e, x[0], reverse=True)
        return {"a": a, "b": b, "h": c["h"], "n": c["n"], "d": d, "e": e, "g": g, "jac": jac, "hess": hess, "rag": rag.to_tensor(), "rev": rev}
    only(path, m, f)


def _jpegs(rng, n):
    return {"b": np.array([tf.io.encode_jpeg(rng.integers(0, 256, (20 + 7 * i % 9, 24, 3)).astype("uint8")).numpy() for i in range(n)], object)}


@row(feed=_jpegs, batches=(1, 3), tolerance=DEEP)
def habit_bytes_to_class(path):
    m = tf.Module()
    m.net = keras.applications.MobileNetV3Small((64, 64, 3), weights=None, classes=5, minimalistic=True)
    m.labels = tf.constant(["a", "b", "c", "d", "e"])
    @tf.function(input_signature=[spec("b", STRING, None)])
    def f(b):
        def one(s):
            i = tf.io.decode_jpeg(s, 3, dct_method="INTEGER_ACCURATE")
            i = tf.image.convert_image_dtype(i, F32)
            i = tf.image.central_crop(i, 0.875)
            i = tf.image.resize(i, [64, 64], "bicubic", preserve_aspect_ratio=False, antialias=True)
            i.set_shape([64, 64, 3])
            return i
        x = tf.map_fn(one, b, F32, parallel_iterations=4)
        shape = tf.map_fn(lambda s: tf.io.extract_jpeg_shape(s), b, I32)
        p = m.net(x * 255)
        s, i = tf.nn.top_k(p, 3)
        return {"s": s, "names": tf.gather(m.labels, i), "shape": shape, "p": p}
    only(path, m, f)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 16, 3)), "training": False}, tolerance=DEEP)
def habit_lora_moe(path):
    """LoRA of a frozen layer, experts of top-1 with a capacity, dispatch by einsum, an auxiliary loss."""
    m = tf.Module()
    m.g, m.w, m.a, m.b, m.up = weights(1, 8, 4), weights(2, 3, 8), weights(3, 3, 2), weights(4, 2, 8), weights(5, 4, 8, 8)
    @tf.function(input_signature=[spec("x", F32, None, 16, 3), spec("training", BOOL)])
    def f(x, training):
        h = x @ m.w + (x @ m.a) @ m.b * 0.5
        h = tf.cond(training, lambda: tf.nn.dropout(h, 0.5), lambda: h)
        n = tf.shape(h)[0] * 16
        flat = tf.reshape(h, [-1, 8])
        gates = tf.nn.softmax(flat @ m.g)
        top = tf.argmax(gates, 1)
        mask = tf.one_hot(top, 4)
        pos = tf.cumsum(mask, 0) * mask
        cap = tf.cast(tf.math.ceil(tf.cast(n, F32) / 4 * 1.25), I32)
        mask *= tf.cast(pos <= tf.cast(cap, F32), F32)
        d = mask[..., None] * tf.one_hot(tf.cast(tf.reduce_sum(pos, 1) - 1, I32), cap)[:, None]
        e = tf.einsum("nec,nd->ecd", d, flat)
        e = tf.nn.gelu(tf.einsum("ecd,edf->ecf", e, m.up), approximate=True)
        y = tf.einsum("nec,ecf->nf", d * tf.reduce_sum(gates * mask, 1)[:, None, None], e)
        parts = tf.dynamic_partition(flat, tf.cast(top, I32), 4)
        back = tf.dynamic_stitch(tf.dynamic_partition(tf.range(n), tf.cast(top, I32), 4), parts)
        return {"y": tf.reshape(y, tf.shape(h)), "aux": 4 * tf.reduce_sum(tf.reduce_mean(gates, 0) * tf.reduce_mean(mask, 0)), "back": back}
    only(path, m, f)


@row(feed=lambda rng, n: {"values": rng.normal(size=(3 * n,)), "lengths": np.full(n, 3), "w": rng.random(3 * n)})
def habit_ragged_bags(path):
    m = tf.Module()
    m.t = weights(1, 30, 4)
    @tf.function(input_signature=[spec("values", F32, None), spec("lengths", I64, None), spec("w", F32, None)])
    def f(values, lengths, w):
        r = tf.RaggedTensor.from_row_lengths(tf.cast(tf.abs(values) * 10, I64) % 30, lengths)
        ww = tf.RaggedTensor.from_row_lengths(w, lengths)
        e = [tf.nn.embedding_lookup_sparse(m.t, r.to_sparse(), ww.to_sparse(), combiner=c) for c in ("sum", "mean", "sqrtn")]
        s = tf.nn.safe_embedding_lookup_sparse(m.t, tf.sparse.retain(r.to_sparse(), w > 0.5), default_id=2)
        rr = tf.nn.embedding_lookup(m.t, r)
        srt = tf.concat([r, r[:, ::-1] + 1], 1)
        return {"e": tf.concat(e, 1), "s": s, "mean": tf.reduce_mean(rr, 1), "max": tf.reduce_max(ww, 1), "t": srt.to_tensor(0), "ids": srt.value_rowids(),
                "mask": tf.ragged.boolean_mask(r, ww > 0.5).to_tensor(-1), "nested": tf.stack([r, r], 1).flat_values, "hot": tf.reduce_max(tf.one_hot(r, 30), 1),
                "softmax": (ww / tf.reduce_sum(ww, 1, keepdims=True)).to_tensor(), "rng": tf.ragged.range(lengths).to_tensor()}
    only(path, m, f)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 8, 8, 3))}, tolerance=DEEP)
def habit_swin_perceiver(path):
    m = tf.Module()
    m.w, m.lat, m.b = weights(1, 3, 12), weights(2, 6, 4), weights(3, 49, 2)
    c = np.stack(np.meshgrid(range(4), range(4), indexing="ij")).reshape(2, -1)
    rel = (c[:, :, None] - c[:, None]).transpose(1, 2, 0) + 3
    index = (rel[..., 0] * 7 + rel[..., 1])
    @tf.function(input_signature=[spec("x", F32, None, 8, 8, 3)])
    def f(x):
        n = tf.shape(x)[0]
        y = tf.roll(x, [-2, -2], [1, 2])
        y = tf.reshape(tf.transpose(tf.reshape(y, [-1, 2, 4, 2, 4, 3]), [0, 1, 3, 2, 4, 5]), [-1, 16, 3])
        qkv = tf.transpose(tf.reshape(y @ m.w, [-1, 16, 3, 2, 2]), [2, 0, 3, 1, 4])
        a = qkv[0] @ tf.transpose(qkv[1], [0, 1, 3, 2]) + tf.transpose(tf.reshape(tf.gather(m.b, index.reshape(-1)), [16, 16, 2]), [2, 0, 1])[None]
        y = tf.reshape(tf.transpose(tf.nn.softmax(a) @ qkv[2], [0, 2, 1, 3]), [-1, 16, 4])
        y = tf.roll(tf.reshape(tf.transpose(tf.reshape(y, [-1, 2, 2, 4, 4, 4]), [0, 1, 3, 2, 4, 5]), [-1, 8, 8, 4]), (2, 2), (1, 2))
        t = tf.reshape(y, [n, 64, 4])
        lat = tf.repeat(m.lat[None], n, 0)
        lat = tf.nn.softmax(tf.einsum("bld,btd->blt", lat, t) / 2) @ t
        return {"y": y, "lat": lat, "up": tf.nn.depth_to_space(y, 2), "down": tf.nn.space_to_depth(y, 4), "p": tf.image.extract_patches(x, [1, 4, 4, 1], [1, 4, 4, 1], [1, 1, 1, 1], "VALID")}
    only(path, m, f)


@row(batches=(1, 2, 3))
def habit_mutable_table(path):
    m = tf.Module()
    m.t = tf.lookup.experimental.MutableHashTable(I64, F32, 0.)
    m.s = tf.lookup.experimental.DenseHashTable(I64, I64, -1, -9, -8)
    m.n = tf.Variable(0.)
    @tf.function(input_signature=[spec("ids", I64, None)])
    def f(ids):
        old = m.t.lookup(ids)
        u, _, c = tf.unique_with_counts(ids)
        m.t.insert(u, m.t.lookup(u) + tf.cast(c, F32))
        m.s.insert(u, u * 2)
        m.s.erase(u[:1])
        keys, values = m.t.export()
        o = tf.argsort(keys)
        m.n.assign(m.n * 0.9 + tf.reduce_mean(old))
        return {"old": old, "new": m.t.lookup(ids), "keys": tf.gather(keys, o), "values": tf.gather(values, o), "size": m.t.size(), "n": m.n.read_value(), "d": m.s.lookup(ids), "ds": m.s.size()}
    only(path, m, f)


@row(sizes=[(9,), (5,)], batches=(1, 3), tolerance=DEEP, sample=True)
def habit_deep_graph(path):
    """More layers of sequences of any length than calls may nest."""
    x = y = keras.Input((None, 4))
    for _ in range(66):
        y = L.Dense(4, "tanh")(y)
    save(keras.Model(x, y), path)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 24)), "level": rng.random((n, 1))}, tolerance=DEEP)
def habit_forecaster(path):
    """Holt and Winters' smoothing in a loop, quantiles, a gated residual network, an autoregressive tail."""
    m = tf.Module()
    m.w, m.g = weights(1, 24, 16), weights(2, 16, 32)
    @tf.function(input_signature=[spec("x", F32, None, 24), spec("level", F32, None, 1)])
    def f(x, level):
        season = tf.TensorArray(F32, 0, dynamic_size=True, clear_after_read=False)
        for i in range(4):
            season = season.write(i, x[:, i])
        l, b = x[:, 3], x[:, 3] - x[:, 2]
        for t in tf.range(4, 24):
            s = season.read(t - 4)
            nl = 0.5 * (x[:, t] - s) + 0.5 * (l + b)
            b = 0.1 * (nl - l) + 0.9 * b
            season = season.write(t, 0.3 * (x[:, t] - nl) + 0.7 * s)
            l = nl
        h = tf.nn.elu(x @ m.w)
        a, g = tf.split(h @ m.g, 2, 1)
        q = tf.sort(tf.tanh(a * tf.sigmoid(g)), 1)
        pos = level[:, 0] * 15
        lo = tf.cast(tf.floor(pos), I32)
        v = tf.gather(q, lo, batch_dims=1)
        ahead = tf.map_fn(lambda k: l + b * tf.cast(k, F32) + season.read(20 + k), tf.range(4), F32)
        diff = x[:, 1:] - x[:, :-1]
        return {"ahead": tf.transpose(ahead), "q": v + (tf.gather(q, tf.minimum(lo + 1, 15), axis=1, batch_dims=1) - v) * (pos - tf.floor(pos)), "season": tf.transpose(season.stack()[-4:]),
                "ac": tf.signal.irfft(tf.cast(tf.abs(tf.signal.rfft(diff, [64])) ** 2, tf.complex64))[:, :5]}
    only(path, m, f)


@row(feed=lambda rng, n: {"a": rng.integers(0, 9, (n, 5)), "b": rng.integers(0, 9, (n, 4))})
def habit_sets_and_bits(path):
    m = tf.Module()
    @tf.function(input_signature=[spec("a", I64, None, None), spec("b", I64, None, None)])
    def f(a, b):
        x = tf.cast(a, F32)
        st = {k: tf.sparse.to_dense(g(a, b), -1) for k, g in {"and": tf.sets.intersection, "or": tf.sets.union, "minus": tf.sets.difference}.items()}
        return {**st, "size": tf.sets.size(tf.sets.union(a, b)), "bits": tf.bitcast(x, I32), "bytes": tf.bitcast(x, U8), "back": tf.bitcast(tf.bitcast(x, U8), F32),
                "xor": tf.bitwise.bitwise_xor(a[:, :4], b), "shift": tf.bitwise.left_shift(a, a), "inv": tf.bitwise.invert(b), "ud": tf.unique(tf.reshape(a, [-1])).idx,
                "dup": tf.tensor_scatter_nd_update(x, tf.stack([tf.range(tf.shape(a)[0]), tf.zeros_like(a[:, 0], I32)], 1), x[:, 1]),
                "mx": tf.tensor_scatter_nd_max(x, [[0, 1]], [99.]), "e1": tf.einsum("...i,...j->...ij", x, x), "e2": tf.einsum("ii->i", tf.tile(x[:1], [5, 1])), "e3": tf.einsum("ij,kj->ik", x, x),
                "e4": tf.einsum("bii->b", tf.tile(x[:, None], [1, 5, 1])), "e5": tf.einsum("iii,ji->j", tf.tile(x[:1, None], [5, 5, 1]), x), "e6": tf.einsum("...ii->...i", tf.tile(x[:, None], [1, 5, 1])),
                "s1": x[..., tf.newaxis, ::-2], "s2": x[-1, 1:-1:2], "s3": x[:, -3:None:-1], "meshed": tf.stack(tf.meshgrid(a[0], b[0])), "conf": tf.math.confusion_matrix(tf.reshape(a[:, :4], [-1]), tf.reshape(b, [-1]), 9)}
    only(path, m, f)


@row(feed=lambda rng, n: {"x": rng.integers(0, 256, (n, 12, 16, 3))}, tolerance=DEEP)
def habit_augmented_by_seed(path):
    m = tf.Module()
    @tf.function(input_signature=[spec("x", U8, None, 12, 16, 3)])
    def f(x):
        s = [1, 2]
        y = tf.image.convert_image_dtype(x, F32)
        g = tf.image.stateless_random_crop(y, [tf.shape(y)[0], 8, 8, 3], s)
        hsv = tf.image.rgb_to_hsv(y)
        return {"flip": tf.image.stateless_random_flip_left_right(y, s), "crop": g, "br": tf.image.stateless_random_brightness(y, 0.2, s), "con": tf.image.stateless_random_contrast(y, 0.5, 1.5, s),
                "hue": tf.image.stateless_random_hue(y, 0.1, s), "sat": tf.image.stateless_random_saturation(y, 0.5, 1.5, s), "std": tf.image.per_image_standardization(y), "yiq": tf.image.rgb_to_yiq(y),
                "yuv": tf.image.yuv_to_rgb(tf.image.rgb_to_yuv(y)), "gray": tf.image.rgb_to_grayscale(x), "sobel": tf.image.sobel_edges(y), "ssim": tf.image.ssim(y, tf.roll(y, 1, 1), 1.0, filter_size=5),
                "psnr": tf.image.psnr(y, y * 0.9, 1.0), "tv": tf.image.total_variation(y), "rot": tf.image.rot90(y, 3), "gamma": tf.image.adjust_gamma(y, 0.7), "hsv": tf.image.hsv_to_rgb(hsv),
                "pad": tf.image.pad_to_bounding_box(x, 2, 1, 20, 20), "rcp": tf.image.resize_with_crop_or_pad(x, 10, 20), "lz": tf.image.resize(y, [7, 9], "lanczos5"), "mit": tf.image.resize(y, [20, 9], "mitchellcubic"), "area": tf.image.resize(x, [6, 8], "area"),
                "car": tf.image.crop_and_resize(y, [[0.1, 0.1, 0.9, 1.2]], [0], [5, 5]), "draw": tf.image.draw_bounding_boxes(y, tf.tile([[[0.1, 0.2, 0.6, 0.9]]], [tf.shape(y)[0], 1, 1]), [[1., 0., 0.]])}
    only(path, m, f)


@row(batches=(1, 3), sample=True)
def habit_batched_by_server(path):
    """tf.nondifferentiable_batch_function, as models for a server have."""
    m = tf.Module()
    m.w = weights(3, 4, 2)

    @tf.nondifferentiable_batch_function(1, 8, 10)
    def batched(x):
        return tf.matmul(x, m.w)
    only(path, m, tf.function(lambda x: {"y": batched(x)}, input_signature=[spec("x", F32, None, 4)]))


@row(feed=lambda rng, n: {"x": rng.normal(size=(n + 1, 6)), "mode": n % 4})
def habit_inplace(path):
    """Old in-place operators, as tensor2tensor's decoder has them."""
    m = tf.Module()

    @tf.function(input_signature=[spec("x", F32, None, 6), spec("mode", I32)])
    def f(x, mode):  # each on a tensor of its own, which it overwrites
        return {"y": tf.raw_ops.InplaceUpdate(x=x + 1, i=[0], v=tf.ones([1, 6]) * tf.cast(mode, F32)),
                "z": tf.raw_ops.InplaceAdd(x=x + 2, i=[1], v=x[:1]),
                "w": tf.raw_ops.InplaceSub(x=x + 3, i=[1, 0], v=x[:2]),
                "s": tf.switch_case(mode, {0: lambda: x + 1, 1: lambda: x * 2, 2: lambda: tf.nn.relu(x)},
                                    default=lambda: x - 1)}
    only(path, m, f)


def block_cells(x):
    """Cells that TensorFlow 1 has operators for, of 3 units."""
    raw, c, h = tf.raw_ops, x[:, :3], x[:, 1:]
    some = {"x": x, "cs_prev": c * 3, "h_prev": h, "w": fixed(1, 7, 12), "wci": fixed(2, 3), "wcf": fixed(3, 3), "wco": fixed(4, 3),
            "b": fixed(5, 12)}
    plain = raw.LSTMBlockCell(**some)
    peepholes = raw.LSTMBlockCell(**some, use_peephole=True, forget_bias=0.5, cell_clip=0.7)
    free = raw.LSTMBlockCell(**some, cell_clip=-1.0)
    gru = raw.GRUBlockCell(x=x, h_prev=h, w_ru=fixed(6, 7, 6), w_c=fixed(7, 7, 3), b_ru=fixed(8, 6), b_c=fixed(9, 3))
    return {f"{name}{k}": y for name, ys in (("l", plain), ("p", peepholes), ("f", free), ("g", gru)) for k, y in enumerate(ys)}


function(block_cells.__name__, block_cells, ROWS)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n + 1, 2, 4)), "steps": n}, batches=(1, 5, 9), sample=True)
def habit_block_lstm(path):
    """LSTM over a whole sequence in one operator, of frozen speech models: tf.compat.v1's LSTMBlockFusedCell."""
    raw = tf.raw_ops
    @tf.function(input_signature=[spec("x", F32, None, None, 4), spec("steps", I64)])
    def f(x, steps):
        c, h = x[0, :, :3], x[0, :, 1:]
        some = {"seq_len_max": steps, "x": x, "cs_prev": c * 3, "h_prev": h, "w": fixed(1, 7, 12), "wci": fixed(2, 3),
                "wcf": fixed(3, 3), "wco": fixed(4, 3), "b": fixed(5, 12)}
        plain = raw.BlockLSTM(**some)
        peepholes = raw.BlockLSTM(**some, use_peephole=True, forget_bias=0.5, cell_clip=0.7)
        second = raw.BlockLSTMV2(**some, use_peephole=True)
        clipped = raw.BlockLSTMV2(**some, cell_clip=0.3)
        # After the last step TensorFlow writes cs and h alone.
        return {f"{name}{k}": y if k in (1, 6) else y[:steps]
                for name, ys in (("l", plain), ("p", peepholes), ("s", second), ("c", clipped)) for k, y in enumerate(ys)}
    only(path, tf.Module(), f)


@row(feed=lambda rng, n: {"x": rng.normal(size=(1, 4)), "label": n}, batches=(1, 3), sample=True)
def habit_one_row_against_many(path):
    """Integrated gradients: a signature of any number of rows whose body takes one."""
    m = tf.Module()
    m.w = weights(3, 4, 5)

    @tf.function(input_signature=[spec("x", F32, None, 4), spec("label", I32)])
    def f(x, label):
        steps = tf.linspace(0.0, 1.0, 9)[:, None] * x
        with tf.GradientTape() as tape:
            tape.watch(steps)
            p = tf.nn.softmax(steps @ m.w)[:, label]
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(label[None], x @ m.w)
        return {"y": tf.reduce_mean(tape.gradient(p, steps), 0) * x[0], "p": p, "loss": loss}
    only(path, m, f)


@row(feed=lambda rng, n: {"text": rng.choice([b"a", b"bc def", b"", b"gh i jk"], n), "x": rng.integers(0, 3, (n, 4))}, sample=True)
def habit_ragged_and_sparse_outputs(path):
    """A signature's ragged and sparse outputs are several tensors each."""
    m = tf.Module()

    @tf.function(input_signature=[spec("text", STRING, None), spec("x", I64, None, 4)])
    def f(text, x):
        words = tf.strings.split(text)
        return {"words": words, "characters": tf.strings.bytes_split(words), "sparse": tf.sparse.from_dense(x), "n": words.row_lengths()}
    only(path, m, f)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 6)), "shape": [n, 6]})
def habit_rank_set_by_hand(path):
    """Of a shape that only the request tells, TensorFlow knows the rank by set_shape()."""
    m = tf.Module()

    @tf.function(input_signature=[spec("x", F32, None, 6), spec("shape", I32, None)])
    def f(x, shape):
        y = tf.reshape(x, shape)
        y.set_shape([None, None])
        a, b = tf.split(y, 2, 1)
        z = tf.cond(shape[0] > 2, lambda: x, lambda: x[0])
        z = tf.cond(shape[0] > 2, lambda: z, lambda: tf.reshape(z, [1, 6]))  # of either rank, as far as TensorFlow knows
        return {"y": tf.pad(a * b, [[0, 0], [1, 2]]), "t": tf.transpose(a, [1, 0]), "e": tf.einsum("ij,jk->ik", z, fixed(1, 6, 2))}
    only(path, m, f)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 4)), "steps": 3})
def habit_many_outputs(path):
    """The caches of every layer: more than 64 values of a loop, and outputs."""
    m = tf.Module()

    @tf.function(input_signature=[spec("x", F32, None, 4), spec("steps", I32)])
    def f(x, steps):
        _, *caches = tf.while_loop(lambda i, *_: i < steps, lambda i, *cs: (i + 1, *[tf.tanh(c * (k % 7) + 1) for k, c in enumerate(cs)]),
                                   (0, *[x + k for k in range(99)]))
        return {f"cache_{k}": c for k, c in enumerate(caches)}
    only(path, m, f)


@row(feed=lambda rng, n: {"x": np.array([b"word %d" % i for i in range(n)], object)}, batches=(1, 3, 2), sample=True)
def habit_variable_of_strings(path):
    """The last answer is kept, as text, by a function that another one calls."""
    m = tf.Module()
    m.last, m.names = tf.Variable("none"), tf.Variable(["a", "b", "c"])

    @tf.function
    def keep(text):
        m.last.assign(text)
        m.names.assign(tf.concat([m.names[1:], [text]], 0))

    @tf.function(input_signature=[spec("x", STRING, None)])
    def f(x):
        before = m.last.read_value()
        keep(tf.strings.join([before, x[0]], "+"))
        return {"before": before, "now": m.last.read_value(), "names": tf.gather(m.names, [2, 0])}
    only(path, m, f)


def json_record(i):
    return (b'{"features": {"feature": {"x": {"floatList": {"value": [%d.5, "-2e0", 7]}}, "name": {"bytes_list": {"value": ["aGk="]}},'
            b' "id": {"int64List": {"value": ["%d", -3]}}, "none": {}}}}' % (i, i << 40))


@row(feed=lambda rng, n: {"json": np.array([json_record(i) for i in range(n)], object)}, sample=True)
def habit_records_in_json(path):
    m = tf.Module()

    @tf.function(input_signature=[spec("json", STRING, None)])
    def f(json):
        return tf.io.parse_example(tf.io.decode_json_example(json), {"x": tf.io.FixedLenFeature([3], F32), "name": tf.io.FixedLenFeature([], STRING),
                                                                     "id": tf.io.FixedLenFeature([2], I64)})
    only(path, m, f)


@row(sizes=[(37,), (64,), (90,), (1,)], sample=True)
def habit_spectrum_of_any_length(path):
    m = tf.Module()

    @tf.function(input_signature=[spec("x", F32, None, None)])
    def f(x):
        n = tf.shape(x)[1]
        r, c = tf.signal.rfft(x), tf.signal.fft(tf.complex(x, tf.sin(x)))
        padded, cut = tf.signal.rfft(x, [2 * n]), tf.signal.rfft(x, [n // 2 + 1])
        square = tf.signal.fft2d(tf.complex(x, -x))
        return {"abs": tf.abs(r), "c": c, "back": tf.signal.irfft(r, [n]), "again": tf.signal.ifft(c), "padded": padded, "cut": cut,
                "longer": tf.signal.irfft(r, [n + 3]), "square": square, "real2d": tf.signal.rfft2d(x)}
    only(path, m, f)


@row()
def habit_constants_carried_by_loops(path):
    """Strides and axes are values of the loop, which hands them on."""
    m = tf.Module()

    @tf.function(input_signature=[spec("x", F32, None, 6)])
    def f(x):
        def step(i, y, strides, axes):
            return i + 1, y + tf.reduce_sum(tf.strided_slice(x, [0, i], [1, 6], strides)) + tf.reduce_max(tf.reduce_sum(x, axes)), strides, axes
        return {"y": tf.while_loop(lambda i, *_: i < 3, step, [0, 0.0, tf.constant([1, 2]), tf.constant([1])])[1]}
    only(path, m, f)


@row(feed=lambda rng, n: {"x": rng.normal(size=(n, 9, 32))}, batches=(1, 2, 3, 8), sample=True)
def habit_projected_positions(path):
    """Relative positions as DeBERTa has them: a Dense layer of a variable, for each head and example, and scores by them."""
    m = tf.Module()
    m.places, m.key = tf.Variable(fixed(1, 1, 16, 32)), L.Dense(32)
    m.key(m.places)
    def heads(t):
        n, length = tf.unstack(tf.shape(t)[:2])
        return tf.reshape(tf.transpose(tf.reshape(t, [n, length, 4, 8]), [0, 2, 1, 3]), [-1, length, 8])
    @tf.function(input_signature=[spec("x", F32, None, None, 32)])
    def f(x):
        query = heads(x)
        keys = tf.tile(heads(m.key(m.places)), [tf.shape(query)[0] // 4, 1, 1])
        return {"y": tf.matmul(query, keys, transpose_b=True), "keys": keys}
    tf.saved_model.save(m, path, signatures=f)
