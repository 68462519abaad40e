"""tf.functions: branches, loops, lists of tensors, arithmetic of integers, state, several signatures."""
import numpy as np
import tensorflow as tf

from corpus.rows import add

F32 = tf.float32


def function(name, body, *specs, **options):
    """A tf.Module whose only signature is body(x, y, z...)."""
    def build(path):
        module = tf.Module()
        names = "xyzuvw"
        module.f = tf.function(lambda *args: body(*args), input_signature=[
            tf.TensorSpec(s.shape, s.dtype, names[i]) for i, s in enumerate(specs)])
        tf.saved_model.save(module, path)
    add(name, build, **options)


def spec(*shape, dtype=F32):
    return tf.TensorSpec(shape, dtype)


ROWS = spec(None, 4)
ANY = tf.TensorSpec(None, F32)


def if_else(x):
    return {"y": tf.cond(tf.reduce_sum(x) > 0, lambda: x + 1, lambda: x * 2)}


def if_shapes(x):
    return {"y": tf.cond(tf.reduce_sum(x) > 0, lambda: tf.concat([x, x], 0), lambda: x)}


def while_loop(x):
    return {"y": tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.tanh(y * 1.5 + 0.1)), (0, x))[1]}


def while_data(x):
    """As many trips as the data say."""
    i, y = tf.while_loop(lambda i, y: tf.reduce_sum(tf.abs(y)) < 100.0, lambda i, y: (i + 1, y * 1.5), (0, x + 0.1))
    return {"y": y, "i": i}


def while_growing(x):
    y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.concat([y, x], 0)), (0, x),
                      shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 4])))[1]
    return {"y": y}


def tensor_array(x):
    array = tf.TensorArray(F32, size=tf.shape(x)[0])
    for i in tf.range(tf.shape(x)[0]):
        array = array.write(i, tf.reduce_sum(x[i]) * x[i])
    return {"y": array.stack(), "g": array.gather([0])}


def unstack_array(x):
    array = tf.TensorArray(F32, size=tf.shape(x)[0], clear_after_read=False).unstack(x)
    total = tf.zeros([4])
    for i in tf.range(tf.shape(x)[0]):
        total += array.read(i) * tf.cast(i + 1, F32)
    return {"y": total, "c": array.stack()}


def scatter_array(x):
    """Tensors of lists that are set at other places than 0, 1, 2, ..., in lists that are longer."""
    two = tf.stack([x[0], x[-1] * 2])
    known = tf.TensorArray(F32, 6, element_shape=[4]).scatter([4, 1], two)
    whole = tf.TensorArray(F32, 5, element_shape=[4]).scatter([0, 1], two)
    computed = tf.argsort(x[0])[::-1]
    sorted_ = tf.TensorArray(F32, 4, element_shape=[]).scatter(computed, x[-1])
    grown = tf.TensorArray(F32, 1, dynamic_size=True, element_shape=[4]).scatter([1, 0], two)
    fresh = tf.raw_ops.TensorListScatterV2(tensor=two, indices=[3, 0], element_shape=[4], num_elements=-1)
    sized = tf.raw_ops.TensorListScatterV2(tensor=two, indices=computed[:2], element_shape=[4], num_elements=4)
    return {"k": known.stack(), "w": whole.stack(), "s": sorted_.stack(), "g": grown.stack(),
            "f": tf.raw_ops.TensorListStack(input_handle=fresh, element_shape=[4], element_dtype=F32),
            "z": tf.raw_ops.TensorListStack(input_handle=sized, element_shape=[4], element_dtype=F32)}


def map_fn(x):
    return {"y": tf.map_fn(lambda r: tf.sort(r) + tf.reduce_max(r), x)}


def vectorized_map(x):
    return {"y": tf.vectorized_map(lambda r: tf.linalg.matvec(tf.ones([3, 4]), r) + r[0], x)}


def scan(x):
    return {"y": tf.scan(lambda a, r: a * 0.5 + r, x)}


def fibonacci(x):
    """Integers through a loop."""
    a, b = tf.constant(0, tf.int64), tf.constant(1, tf.int64)
    for _ in tf.range(x):
        a, b = b, a + b
    return {"y": a}


def greedy(x):
    """Greedy decoding of a language model, until all are done."""
    table = tf.constant(np.random.default_rng(0).normal(size=(9, 9)).astype(np.float32))
    n = tf.shape(x)[0]
    ids, done, i = x[:, tf.newaxis], tf.zeros([n], tf.bool), tf.constant(0)
    while tf.logical_and(i < 8, tf.logical_not(tf.reduce_all(done))):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(ids, tf.TensorShape([None, None]))])
        logits = tf.gather(table, ids[:, -1]) - 3 * tf.cast(tf.one_hot(ids[:, 0], 9), F32)
        step = tf.where(done, 0, tf.argmax(logits, -1, tf.int32))
        done = tf.logical_or(done, tf.equal(step, 3))
        ids = tf.concat([ids, step[:, tf.newaxis]], 1)
        i += 1
    return {"ids": ids}


def beam(x):
    """Beam search with top_k and gathers of the beams."""
    table = tf.math.log_softmax(tf.constant(np.random.default_rng(0).normal(size=(9, 9)).astype(np.float32)))
    n, k = tf.shape(x)[0], 3
    ids = tf.tile(x[:, None, None], [1, k, 1])
    scores = tf.tile([[0.0, -1e9, -1e9]], [n, 1])
    for _ in range(4):
        new = scores[:, :, None] + tf.gather(table, ids[:, :, -1])
        scores, at = tf.math.top_k(tf.reshape(new, [n, -1]), k)
        ids = tf.concat([tf.gather(ids, at // 9, batch_dims=1), (at % 9)[:, :, None]], 2)
    return {"ids": ids, "scores": scores}


def switch_case(x):
    return {"y": tf.switch_case(tf.cast(tf.shape(x)[0] % 3, tf.int32), [lambda: x, lambda: x + 1, lambda: x[:1]])}


def switch_case_of_32(which, x):
    """All branches, and indices that name none: those take the last."""
    ys = [tf.raw_ops.Case(branch_index=i, input=[x], Tout=[tf.float32], output_shapes=[[]], branches=[
        tf.function(lambda v, k=k: v * k).get_concrete_function(tf.TensorSpec([], tf.float32)) for k in range(32)])[0]
        for i in (which, which + 1, which - 32, which + 2 ** 30)]
    return {"y": tf.stack(ys)}


def asserts(x):
    tf.debugging.assert_greater(tf.shape(x)[0], 0, message="empty")
    tf.debugging.assert_all_finite(x, "not finite")
    with tf.control_dependencies([tf.debugging.assert_less(tf.reduce_max(x), 100.0)]):
        return {"y": tf.identity(x) + 1}


def slices(x):
    n = tf.shape(x)[0]
    return {"a": x[..., 1:3], "b": x[::-1], "c": x[:, ::2], "d": x[n // 2:], "e": x[:, tf.newaxis, -1], "f": x[:, 3:0:-1],
            "g": tf.strided_slice(x, [0, 0], [n, 4], [1, 3]), "h": x[-1:]}


def assign_slices(x):
    y = tf.tensor_scatter_nd_update(x, [[0, 1]], [7.0])
    y = tf.tensor_scatter_nd_add(y, [[0, 2]], [1.0])
    return {"y": y, "s": tf.scatter_nd([[1], [3]], tf.constant([5.0, 6.0]), [5])}


def gathers(x):
    return {"a": tf.gather(x, [3, 0], axis=1), "b": tf.gather_nd(x, [[0, 1], [0, 3]]),
            "c": tf.gather(x, tf.argsort(x, axis=1), batch_dims=1, axis=1), "d": tf.boolean_mask(x, x[:, 0] > 0)}


def sorts(x):
    values, indices = tf.math.top_k(x, 2)
    return {"s": tf.sort(x, direction="DESCENDING"), "a": tf.argsort(x), "v": values, "i": indices,
            "m": tf.argmax(x, 1), "n": tf.argmin(x, 0)}


def sorts_long(x):
    """More elements than are sorted at once, with equal ones among them."""
    r = tf.round(x * 9)
    values, indices = tf.math.top_k(r, 100)
    return {"s": tf.sort(x), "a": tf.argsort(r, stable=True), "v": values, "i": indices, "up": tf.math.top_k(tf.sort(r), 70).indices,
            "n": tf.argsort(tf.cast(r, tf.int32), direction="DESCENDING", stable=True)}


def strides_of_unknown(x):
    """A stride that divides much: no size can be guessed."""
    y = tf.nn.conv1d(x[:, :, None], tf.ones([127, 1, 2]) / 127, 64, "VALID")
    return {"y": y, "m": tf.nn.max_pool1d(y, 2, 2, "SAME")}


def segments(x):
    ids = tf.constant([0, 0, 1, 3])
    t = tf.transpose(x)
    return {"a": tf.math.segment_sum(t, ids), "b": tf.math.unsorted_segment_mean(t, ids, 4), "c": tf.math.segment_max(t, ids),
            "d": tf.math.unsorted_segment_max(t, ids, 5), "e": tf.math.segment_mean(t, ids)}


def reductions(x):
    return {"a": tf.reduce_sum(x, 0), "b": tf.reduce_mean(x, [0, 1]), "c": tf.reduce_max(x, -1, keepdims=True),
            "d": tf.reduce_logsumexp(x, 1), "e": tf.reduce_prod(x, 1), "f": tf.math.reduce_std(x, 1), "g": tf.norm(x, axis=1),
            "h": tf.cumsum(x, 1, exclusive=True, reverse=True), "i": tf.math.cumprod(x, 1), "j": tf.reduce_any(x > 1, 1),
            "k": tf.reduce_min(x), "l": tf.math.cumulative_logsumexp(x, 1), "m": tf.math.count_nonzero(x > 0, 1)}


def einsums(x):
    w = tf.reshape(tf.range(24, dtype=F32) / 10, [4, 2, 3])
    y = tf.einsum("na,abc->nbc", x, w)
    return {"a": y, "b": tf.einsum("nbc,nbd->ncd", y, y), "c": tf.einsum("ij->ji", x), "d": tf.einsum("...a,...a->...", x, x),
            "e": tf.tensordot(x, w, 1), "f": tf.linalg.matmul(y, y, transpose_a=True)}


def integers(x):
    return {"a": x // 3, "b": x % 3, "c": tf.bitwise.bitwise_xor(x, 5), "d": tf.math.floormod(-x, 4), "e": x * x - 7,
            "f": tf.cast(x, F32) / 2, "g": tf.bitwise.left_shift(x, 2), "h": tf.bitwise.right_shift(x, 1), "i": tf.math.pow(x, 2),
            "j": tf.truncatediv(-x, 3), "k": tf.cast(x, tf.uint8), "l": tf.maximum(x, 2), "m": tf.math.abs(-x)}


def special(x):
    p = tf.abs(x) + 0.5
    return {"a": tf.math.lgamma(p), "b": tf.math.digamma(p), "c": tf.math.erfinv(tf.tanh(x) * 0.9), "d": tf.math.igamma(p, p),
            "e": tf.math.zeta(p + 1, p), "f": tf.math.polygamma(1.0, p), "g": tf.math.betainc(p, p, tf.sigmoid(x)),
            "h": tf.math.bessel_i0e(x), "i": tf.math.ndtri(tf.sigmoid(x)), "j": tf.math.expm1(x), "k": tf.math.rint(x),
            "l": tf.math.nextafter(x, p), "m": tf.math.bessel_i1e(x)}


def shapes(x):
    n = tf.shape(x)[0]
    return {"a": tf.reshape(x, [-1, 2, 2]), "b": tf.tile(x, [2, 1]), "c": tf.pad(x, [[0, 0], [1, 2]], constant_values=3.0),
            "d": tf.pad(x, [[0, 0], [2, 1]], "REFLECT"), "e": tf.expand_dims(x, -2), "f": tf.squeeze(x[:, :1], 1),
            "g": tf.broadcast_to(x[:1], [n, 4]), "h": tf.stack([x, x * 2], 1), "i": tf.fill([n, 2], 5.0), "j": tf.size(x),
            "k": tf.roll(x, 1, 1), "l": tf.reverse(x, [1]), "m": tf.repeat(x, 2, 0), "n": tf.range(n), "o": tf.rank(x),
            "p": tf.linspace(0.0, 1.0, 5), "q": tf.eye(3), "r": tf.linalg.diag(x), "s": tf.meshgrid(tf.range(3), tf.range(n))[1],
            "t": tf.linalg.band_part(tf.ones([4, 4]) * x[0], 1, 0), "u": tf.split(x, 2, 1)[1], "v": tf.unstack(x, axis=1)[2]}


def blocks(x):
    y = tf.reshape(x, [-1, 2, 2, 1])
    z = tf.tile(y, [1, 2, 2, 4])
    return {"a": tf.nn.depth_to_space(z, 2), "b": tf.nn.space_to_depth(z, 2), "c": tf.space_to_batch(z, [2, 2], [[0, 0], [0, 0]]),
            "d": tf.image.extract_patches(z, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID"),
            "e": tf.nn.local_response_normalization(z), "f": tf.nn.l2_normalize(x, 1)}


def wheres(x):
    return {"a": tf.where(x > 0), "b": tf.where(x > 0, x, -1.0), "c": tf.unique(tf.cast(x[:, 0] * 2, tf.int32))[0],
            "d": tf.math.bincount(tf.cast(tf.abs(x[:, 0]), tf.int32), minlength=5), "e": tf.clip_by_value(x, -0.5, 0.5),
            "f": tf.one_hot(tf.cast(tf.abs(x[:, 1]), tf.int32), 4), "g": tf.searchsorted([0.0, 1.0, 2.0], x[:, 0]),
            "h": tf.histogram_fixed_width(x, [-2.0, 2.0], 5), "i": tf.sequence_mask(tf.cast(tf.abs(x[:, 0]) * 3, tf.int32), 5)}


def linear_algebra(x):
    a = tf.linalg.matmul(x[:, :, None], x[:, None, :]) + 3 * tf.eye(4)
    return {"i": tf.linalg.inv(a), "d": tf.linalg.det(a), "c": tf.linalg.cholesky(a), "s": tf.linalg.solve(a, x[:, :, None]),
            "t": tf.linalg.triangular_solve(tf.linalg.cholesky(a), x[:, :, None]), "e": tf.linalg.eigvalsh(a),
            "v": tf.linalg.svd(a, compute_uv=False), "p": tf.linalg.trace(a), "q": tf.linalg.diag_part(a)}


def fourier(x):
    y = tf.signal.rfft(x)
    return {"a": tf.abs(y), "b": tf.signal.irfft(y), "c": tf.math.real(tf.signal.fft(tf.complex(x, x))), "d": y,
            "e": tf.math.angle(y), "f": tf.signal.dct(x)}


def fourier_open(x):
    """Lengths that are computed, of inputs whose sizes are unknown."""
    n = tf.shape(x)[1] + 3
    y = tf.signal.rfft(x)
    return {"a": y, "b": tf.signal.irfft(y), "c": tf.signal.rfft(x, [n]), "d": tf.signal.fft(tf.cast(x, tf.complex64)),
            "e": tf.abs(tf.signal.rfft2d(tf.stack([x, x + 1], 2))), "f": tf.signal.irfft(y, [n])}


def fourier_long(x):
    """Lengths above 2048, which two factors transform: as they are, padded, cut, odd, of frames."""
    y = tf.signal.rfft(x)
    z = tf.complex(x, x[:, ::-1])
    frames = tf.signal.stft(x, 600, 300, 4096)
    return {"a": y, "b": tf.signal.irfft(y), "c": tf.signal.fft(z), "d": tf.signal.ifft(tf.cast(z, tf.complex128)), "e": tf.signal.rfft(x, [6000]),
            "f": tf.signal.irfft(y, [3000]), "g": tf.signal.irfft(y, [4095]), "h": tf.signal.inverse_stft(frames, 600, 300, 4096)}


def complex_numbers(x, y):
    """Complex inputs and outputs; x [n, 4], y of any shape."""
    return {"sum": x + tf.math.conj(x), "product": x * x[:1], "quotient": x / (x + 2), "abs": tf.abs(x), "y": y, "first": tf.reduce_sum(x),
            "fft": tf.signal.ifft(tf.signal.fft(x) * 2), "real": tf.math.real(x), "polar": tf.complex(tf.abs(x), tf.math.angle(x))}


def spectrogram(x):
    s = tf.abs(tf.signal.stft(x, 64, 32))
    mel = tf.matmul(s, tf.signal.linear_to_mel_weight_matrix(8, 33, 8000, 20.0, 4000.0))
    return {"mel": tf.math.log(mel + 1e-6), "mfcc": tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(mel + 1e-6))}


def random(x):
    u = tf.random.stateless_uniform(tf.shape(x), [1, 2])
    n = tf.random.stateless_normal(tf.shape(x), [3, 4])
    return {"u": u, "n": n, "i": tf.random.stateless_uniform([5], [1, 2], 0, 10, tf.int32),
            "t": tf.random.stateless_truncated_normal([5], [1, 9]), "c": tf.random.stateless_categorical(x, 3, [5, 6])}


def losses(x):
    t = tf.one_hot(tf.zeros([tf.shape(x)[0]], tf.int32), 4)
    return {"a": tf.nn.softmax_cross_entropy_with_logits(t, x), "b": tf.nn.sigmoid_cross_entropy_with_logits(t, x),
            "c": tf.nn.sparse_softmax_cross_entropy_with_logits(tf.zeros([tf.shape(x)[0]], tf.int32), x), "d": tf.nn.l2_loss(x),
            "e": tf.nn.in_top_k(tf.zeros([tf.shape(x)[0]], tf.int32), x, 2), "f": tf.keras.losses.huber(t, x),
            "g": tf.keras.losses.cosine_similarity(t, x)}


def quantized(x):
    return {"a": tf.quantization.fake_quant_with_min_max_args(x, -2, 2), "b": tf.quantization.quantize_and_dequantize_v2(
        x, -2.0, 2.0, range_given=True), "c": tf.quantization.fake_quant_with_min_max_vars_per_channel(
            x, [-1.0] * 4, [1.0, 2.0, 3.0, 4.0])}


def quantize(x):
    q, low, high = tf.quantization.quantize(x, -3.0, 3.0, tf.quint8)
    return {"y": tf.quantization.dequantize(q, low, high)}


def ragged(x):
    r = tf.RaggedTensor.from_row_splits(tf.reshape(x, [-1]), tf.range(0, tf.size(x) + 1, 2))
    return {"a": tf.reduce_sum(r, 1), "b": r.to_tensor(), "c": tf.concat([r, r], 1).flat_values, "d": r.row_lengths(),
            "e": tf.ragged.boolean_mask(x, x > 0).to_tensor(-1.0), "f": (r * 2.0).values, "g": tf.RaggedTensor.from_tensor(x).row_splits}


def sparse(x):
    s = tf.sparse.from_dense(tf.where(x > 0, x, 0.0))
    return {"a": tf.sparse.to_dense(s), "b": tf.sparse.sparse_dense_matmul(s, tf.ones([4, 2])), "c": tf.sparse.reduce_sum(s, 1),
            "d": tf.sparse.to_dense(tf.sparse.reorder(s)), "e": s.indices, "f": tf.sparse.to_dense(tf.sparse.add(s, s)),
            "g": tf.sparse.softmax(s).values, "h": tf.sparse.to_dense(tf.sparse.transpose(s)),
            "i": tf.sparse.to_dense(tf.sparse.concat(1, [s, s])), "j": tf.sparse.to_dense(tf.sparse.slice(s, [0, 1], [1, 2]))}


def unknown_rank(x):
    return {"a": tf.expand_dims(x, -1), "b": tf.reduce_sum(x, -1), "c": tf.nn.relu(x) + 1, "d": tf.shape(x), "e": tf.rank(x),
            "f": tf.reshape(x, [-1]), "g": x[..., 0], "h": tf.concat([x, x], -1), "i": tf.transpose(x), "j": tf.nn.softmax(x),
            "k": tf.reduce_mean(x), "l": tf.gather(x, [0, 1], axis=-1), "m": tf.zeros_like(x), "n": tf.stack([x, x]),
            "o": tf.broadcast_to(x, tf.shape(x)), "p": x[0]}


def custom_gradient(x):
    @tf.custom_gradient
    def f(v):
        return tf.exp(v), lambda g: g
    return {"y": f(x)}


def gradient_inside(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.tanh(tf.matmul(x, tf.ones([4, 3])) ** 2))
    return {"y": tape.gradient(y, x)}


def recompute(x):
    return {"y": tf.recompute_grad(lambda v: tf.nn.relu(tf.matmul(v, tf.ones([4, 4]))))(x)}


def xla(x):
    return {"y": tf.function(lambda v: tf.nn.softmax(tf.matmul(v, tf.ones([4, 4]))), jit_compile=True)(x)}


def implementations(x):
    """One function written for two devices: the CPU's is the one that runs."""
    def of(device, f):
        return tf.function(f, experimental_attributes={"api_implements": "scaled", **device})
    cpu, other = of({"api_preferred_device": "CPU"}, lambda v: v * 2), of({}, lambda v: v * 3)
    return {"y": cpu(x), "z": other(x)}


def xla_slices(x, y):
    """What transformers' loops of generation call, compiled or not."""
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops
    part = gen_xla_ops.xla_dynamic_slice(x, [0, y], [1, 3])
    return {"y": part, "z": gen_xla_ops.xla_dynamic_update_slice(x, part * 2, [y, y - 2])}


def checks(x):
    return {"y": tf.ensure_shape(x, [None, 4]), "n": tf.debugging.check_numerics(x, "bad"), "i": tf.identity_n([x, x])[1],
            "s": tf.stop_gradient(x), "a": tf.add_n([x, x, x]), "g": tf.grad_pass_through(tf.round)(x)}


def accumulate_doubles(x):
    return {"y": tf.math.reduce_euclidean_norm(x, 1), "m": tf.nn.moments(x, [0])[1], "w": tf.nn.weighted_moments(x, [1], tf.ones_like(x))[0],
            "z": tf.math.l2_normalize(x), "c": tf.linalg.cross(x[:, :3], x[:, 1:])}


for body in (if_else, if_shapes, while_loop, while_data, while_growing, tensor_array, unstack_array, scatter_array, map_fn, vectorized_map, scan,
             switch_case, asserts, slices, assign_slices, gathers, sorts, segments, reductions, einsums, special, shapes, blocks,
             wheres, linear_algebra, random, losses, quantized, quantize, ragged, sparse, custom_gradient,
             gradient_inside, recompute, xla, implementations, checks):
    function(body.__name__, body, ROWS, sample=body.__name__ in ("while_loop", "if_else", "slices", "implementations"))
function("xla_slices", xla_slices, spec(None, 5), spec(dtype=tf.int32), feed=lambda rng, n: {"x": rng.normal(size=(n, 5)), "y": n - 2},
         batches=(1, 3, 4, 32), sample=True)
function("sorts_long", sorts_long, spec(None, 5000), batches=(1, 3), sample=True)
function("strides_of_unknown", strides_of_unknown, spec(None, None), batches=(1, 3), sizes=[(300,), (2048,)], sample=True)
function("switch_case_of_32", switch_case_of_32, spec(dtype=tf.int32), spec(), feed=lambda rng, n: {"x": np.int32(n % 32), "y": np.float32(2)}, sample=True)
function("moments_and_norms", accumulate_doubles, ROWS)
function("fibonacci", fibonacci, spec(dtype=tf.int32), feed=lambda rng, n: n)
function("greedy_decoding", greedy, spec(None, dtype=tf.int32))
function("beam_search", beam, spec(None, dtype=tf.int32))
function("integer_arithmetic", integers, spec(None, 4, dtype=tf.int32))
function("integer_arithmetic_64", integers, spec(None, 4, dtype=tf.int64))
function("fourier", fourier, spec(None, 16))
function("fourier_long", fourier_long, spec(None, 4096), batches=(1, 3), sample=True)
function("fourier_open", fourier_open, spec(None, None), sizes=[(7,), (12,)], sample=True)
function("complex_numbers", complex_numbers, spec(None, 4, dtype=tf.complex64), spec(None, None, 2, dtype=tf.complex64),
         sizes=[(3,), (5,)], sample=True)
function("complex_numbers_128", complex_numbers, spec(None, 4, dtype=tf.complex128), spec(dtype=tf.complex128))
function("spectrogram", spectrogram, spec(None, None), sizes=[(400,), (257,)])
function("unknown_rank", unknown_rank, ANY, sizes=[(3,), (2, 4)])


class Counter(tf.Module):
    """State that signatures read and write."""

    def __init__(self):
        super().__init__()
        self.scale = tf.Variable([1.0, 2.0, 3.0, 4.0], name="scale")
        self.frozen = tf.Variable(2.0, trainable=False)

    @tf.function(input_signature=[ROWS])
    def forward(self, x):
        return {"y": x * self.scale + self.frozen}

    @tf.function(input_signature=[ROWS, spec(None)])
    def two_inputs(self, x, w):
        return {"y": x * w[:, None], "z": tf.reduce_sum(x * self.scale, 1)}

    @tf.function(input_signature=[])
    def weights(self):
        return {"scale": self.scale.read_value(), "one": tf.constant(1)}


def signatures(path):
    m = Counter()
    tf.saved_model.save(m, path, signatures={"serving_default": m.forward, "two": m.two_inputs, "weights": m.weights})


class Stateful(tf.Module):
    def __init__(self):
        super().__init__()
        self.total, self.count = tf.Variable(tf.zeros([4])), tf.Variable(0, dtype=tf.int64)

    @tf.function(input_signature=[ROWS])
    def update(self, x):
        self.total.assign_add(tf.reduce_sum(x, 0))
        self.count.assign_add(1)
        return {"total": self.total.read_value(), "count": self.count.read_value()}


def stateful(path):
    m = Stateful()
    tf.saved_model.save(m, path, signatures={"serving_default": m.update})


def keras_with_optimizer(path):
    """Optimizer slots, metrics and the loss are in the object graph; no signature needs them."""
    import keras
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.BatchNormalization()])
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(np.random.default_rng(1).normal(size=(8, 4)), np.zeros((8, 3)), verbose=0)
    tf.saved_model.save(model, path, signatures=tf.function(lambda x: {"y": model(x, training=False)}, input_signature=[ROWS]))


def frozen_variables(path):
    """Variables of strings and of complex numbers, which nothing assigns."""
    module = tf.Module()
    module.names, module.scale = tf.Variable(["a", "b", "c"], trainable=False), tf.Variable([1 + 2j, -1j], trainable=False)
    module.f = tf.function(lambda x: {"name": tf.gather(module.names, tf.argmax(x[:, :3], 1)), "all": module.names.read_value(),
                                      "y": tf.complex(x[:, :2], x[:, 2:]) * tf.cast(module.scale, tf.complex64)}, input_signature=[ROWS])
    tf.saved_model.save(module, path)


def nested_functions(path):
    module = tf.Module()
    inner = tf.function(lambda x, k: tf.nn.relu(x) * k)
    module.f = tf.function(lambda x: {"y": inner(x, 2.0) + inner(x, 3.0) + inner(tf.concat([x, x], 0), 1.0)[:1]},
                           input_signature=[ROWS])
    tf.saved_model.save(module, path)


def partial_unknown(path):
    module = tf.Module()
    module.f = tf.function(lambda x: {"y": tf.reduce_mean(tf.nn.relu(x), [1, 2]), "z": tf.transpose(x, [0, 2, 1])},
                           input_signature=[tf.TensorSpec([None, None, None], F32, "x")])
    tf.saved_model.save(module, path)


def fixed_batch(path):
    module = tf.Module()
    module.f = tf.function(lambda x: {"y": tf.matmul(x, x, transpose_b=True)}, input_signature=[tf.TensorSpec([3, 4], F32, "x")])
    tf.saved_model.save(module, path)




for make in signatures, stateful, keras_with_optimizer, frozen_variables, nested_functions, partial_unknown, fixed_batch:
    add(f"module_{make.__name__}", make, sample=make is frozen_variables)
