/* Sextant for C++17: the C interface, with options that C++ can write.
 *
 *     x = sx_conv2d(b, x, 32, 3, sx::padding = SX_SAME, sx::activation = SX_RELU);
 *
 * is the call  sx_conv2d(b, x, 32, 3, .padding = SX_SAME, .activation = SX_RELU)  of C, whose macros
 * need compound literals. Everything else is as the C headers say: in C++ an option is written
 * sx::name = value, a list sx::image = {128, 128, 3}, and a struct of options is a value, not a
 * pointer:
 *
 *     const auto config = sx_run_config_of(sx::model_dir = "run1", sx::train_batch_size = 64);
 *     sx_estimator_create(&model, &config, nullptr, estimator.out());
 *
 * sx::unique<T> owns an object of the library, sx::check() throws its errors. Exceptions must not
 * leave a function that the library calls, such as a callback: return the sx_status. Only those of
 * the model function of SX_MODEL are caught. */
#ifndef SEXTANT_SEXTANT_HPP
#define SEXTANT_SEXTANT_HPP

#include <sextant/sextant.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

/* ---- Options ---- */

/* The fields of all option structs, sx_optimizer and sx_schedule; each is an object sx::name, whose
 * assignment makes an option. Written by tools/gen-ops. */
#define SX_FIELDS_(X) \
    X(about) X(activation) X(after) X(alpha) X(api) X(api_key) X(augment) X(axes) X(axis) \
    X(backup_dir) X(base_batch_size) X(batch_axis) X(batch_norm) X(batch_size) X(before) X(begin) \
    X(beta1) X(beta2) X(beta_1) X(beta_2) X(bfloat16) X(bfloat16_products) X(bias_initializer) \
    X(boundaries) X(buffer) X(build) X(ca_file) X(callbacks) X(centered) X(certificate_file) \
    X(checkpoint) X(checkpoint_save_graph_def) X(cluster) X(components) X(compression) X(config) \
    X(coordinator) X(count) X(credentials_file) X(cross_device_ops) X(data) X(default_text) \
    X(default_value) X(depth) X(device) X(device_fn) X(device_options) X(devices) X(dilation) \
    X(dilations) X(dims) X(drop_remainder) X(dtype) X(dump_stablehlo) X(eeta) \
    X(embedding_config_spec) X(epochs) X(epsilon) X(eval_batch_size) X(eval_distribute) \
    X(evaluation_master) X(every_steps) X(example_weight) X(examples) X(exclusive) \
    X(experimental_distribute) X(experimental_max_worker_delay_secs) X(export_to_tpu) X(features) \
    X(file) X(filters) X(fingerprint) X(first_id) X(fn) X(fresh) X(gamma_initializer) \
    X(global_batch_size) X(gpu_memory_limit) X(groups) X(half_up) X(host) X(image) X(image_key) \
    X(in_epochs) X(initial_accumulator_value) X(input) X(inputs) X(int8) X(inter_op) X(intra_op) \
    X(iterations_per_loop) X(iterations_per_loop_secs) X(join_timeout_secs) \
    X(keep_checkpoint_every_n_hours) X(keep_checkpoint_max) X(keep_dims) X(keep_ms) X(kernel) \
    X(kernel_initializer) X(kernel_width) X(key) X(key_file) X(kind) X(l2) X(label_base) \
    X(label_base_set) X(label_dtype) X(label_key) X(labels) X(lazy) X(learning_rate) X(length) \
    X(log_device_placement) X(log_step_count_steps) X(lost_timeout_secs) X(master) \
    X(max_answer_bytes) X(max_calls) X(max_executables) X(max_length) X(max_nodes) X(max_programs) \
    X(max_steps) X(max_trips) X(max_unpacked_bytes) X(mean) X(memory_budget) X(memory_limit_bytes) \
    X(memory_limit_name) X(micro_batches) X(mode) X(model_dir) X(momentum) X(n_boundaries) \
    X(n_callbacks) X(n_features) X(n_words) X(name) X(narrow_range) X(nesterov) X(no_bias) \
    X(no_center) X(no_compile_cache) X(no_eval_on_tpu) X(no_scale) X(no_shuffle) X(num_bits) \
    X(num_classes) X(num_processes) X(observer) X(observer_user) X(off) X(on) X(on_profile) \
    X(optimizer) X(optional) X(outputs) X(padding) X(padding_value) X(pads) X(parameter_device) \
    X(params) X(per_channel) X(pjrt_plugin) X(pool) X(precision) X(predict_batch_size) X(prefetch) \
    X(preprocess) X(process_id) X(profile_user) X(project) X(protocol) X(python) \
    X(random_brightness) X(random_contrast) X(random_crop) X(random_shear) X(random_zoom) X(rate) \
    X(recipe) X(recursive) X(reduction) X(release) X(replicas) X(require_exact) X(retries) \
    X(reverse) X(rho) X(same_each_epoch) X(sample_weight) X(save_checkpoints_secs) \
    X(save_checkpoints_steps) X(save_summary_steps) X(scale) X(schedule) X(scope) X(seed) \
    X(separator) X(serving_input_fn) X(serving_user) X(session_config) \
    X(session_creation_timeout_secs) X(shards) X(size) X(skip_corrupt) X(staircase) X(std) \
    X(steps) X(steps_per_eval) X(steps_per_execution) X(stop) X(straight_through) X(strategy) \
    X(strict_placement) X(strides) X(symmetric) X(tags) X(tf_random_seed) X(threads) X(timeout_ms) \
    X(top_k) X(tpu) X(tpu_config) X(train_batch_size) X(train_distribute) X(train_step) \
    X(training) X(transpose_a) X(transpose_b) X(transpose_input) X(truncate) X(type) X(units) \
    X(unparsed) X(unsigned_input) X(use_tpu) X(user) X(validation_data) X(value) X(values) \
    X(vars_to_warm_start) X(version) X(views) X(virtual_devices) X(warm_start_from) \
    X(warmup_epochs) X(warmup_steps) X(window) X(words) X(worker_create) X(worker_destroy) \
    X(workers) X(xla_options) X(zone)

namespace sx {

template <class T> class unique; /* below */

namespace detail {

/* What an option keeps of its value: a copy; of an owned object the pointer. */
template <class T> T *stored(const unique<T> &value)
{
    return value.get();
}
template <class Item, std::size_t n> constexpr Item *stored(Item (&array)[n])
{
    return array;
}
template <class Value> constexpr std::decay_t<const Value &> stored(const Value &value)
{
    return value;
}
template <class Value> using stored_t = decltype(stored(std::declval<Value &>()));

/* The values of sx::size = {SX_BATCH, 2, rows}: numbers of any types. */
struct number {
    std::int64_t whole = 0;
    double real = 0;
    bool is_whole;
    template <class Value>
    constexpr number(Value value) : is_whole(!std::is_floating_point<Value>::value)
    {
        if constexpr (std::is_floating_point<Value>::value) {
            real = static_cast<double>(value);
        } else {
            whole = static_cast<std::int64_t>(value);
        }
    }
    template <class Field> constexpr Field as() const
    {
        return is_whole ? static_cast<Field>(whole) : static_cast<Field>(real);
    }
};
template <std::size_t n> struct list {
    number values[n];
};
template <std::size_t n, std::size_t... i>
constexpr list<n> make_list(const number (&values)[n], std::index_sequence<i...>)
{
    return {{values[i]...}};
}

template <class Field, class Value> constexpr void put(Field &field, const Value &value)
{
    field = value;
}
template <class Field, std::size_t size, std::size_t n>
constexpr void put(Field (&field)[size], const list<n> &given)
{
    static_assert(n <= size, "more values than the option has");
    for (std::size_t i = 0; i < n; i++) {
        field[i] = given.values[i].template as<Field>();
    }
}
template <std::size_t n> constexpr void put(sx_axes &field, const list<n> &given)
{
    field.n = static_cast<int>(n);
    put(field.v, given);
}

/* The values of sx::inputs = {sx_feature_of(…), …}: structs. */
template <class Item, std::size_t n> struct items {
    Item values[n];
};
template <class Item, std::size_t n, std::size_t... i>
constexpr items<Item, n> make_items(const Item (&values)[n], std::index_sequence<i...>)
{
    return {{values[i]...}};
}
template <class Item, std::size_t size, std::size_t n>
constexpr void put(Item (&field)[size], const items<Item, n> &given)
{
    static_assert(n <= size, "more values than the option has");
    for (std::size_t i = 0; i < n; i++) {
        field[i] = given.values[i];
    }
}

struct option {};
template <class T> constexpr bool is_option = std::is_base_of<option, T>::value;

} // namespace detail

/* sx::padding and all the others: objects without a state, whose operator= makes an option. */
#define SX_FIELD_(field)                                                                      \
    namespace detail {                                                                        \
    template <class Value> struct field##_option : option {                                   \
        Value value;                                                                          \
        constexpr explicit field##_option(const Value &v) : value(v) {}                       \
        template <class Struct> constexpr void apply(Struct &to) const                        \
        {                                                                                     \
            put(to.field, value);                                                             \
        }                                                                                     \
    };                                                                                        \
    struct field##_field {                                                                    \
        template <class Value>                                                                \
        [[nodiscard]] constexpr field##_option<stored_t<Value>> operator=(Value &&v) const    \
        {                                                                                     \
            return field##_option<stored_t<Value>>(stored(v));                                \
        }                                                                                     \
        template <class Item, std::size_t n,                                                  \
                  class = std::enable_if_t<std::is_class<Item>::value>>                       \
        [[nodiscard]] constexpr field##_option<items<Item, n>>                                \
        operator=(const Item (&values)[n]) const                                              \
        {                                                                                     \
            return field##_option<items<Item, n>>(                                            \
                make_items(values, std::make_index_sequence<n>()));                           \
        }                                                                                     \
        template <std::size_t n>                                                              \
        [[nodiscard]] constexpr field##_option<list<n>>                                       \
        operator=(const number (&values)[n]) const                                            \
        {                                                                                     \
            return field##_option<list<n>>(make_list(values, std::make_index_sequence<n>())); \
        }                                                                                     \
    };                                                                                        \
    }                                                                                         \
    inline constexpr detail::field##_field field{};
SX_FIELDS_(SX_FIELD_)
#undef SX_FIELD_
#undef SX_FIELDS_

namespace detail {

/* Becomes whatever field it initializes, as an assignment would. */
template <class Value> struct positional {
    const Value &value;
    template <class Field> constexpr operator Field() const
    {
        Field field{};
        put(field, value);
        return field;
    }
};

template <class... Given> constexpr std::size_t count_positional()
{
    std::size_t n = 0;
    bool more = true;
    ((more = more && !is_option<Given>, n += more ? 1 : 0), ...);
    return n;
}

template <class Struct, class Value> constexpr void apply(Struct &to, const Value &value)
{
    if constexpr (is_option<Value>) {
        value.apply(to);
    } else {
        (void)to;
        (void)value;
    }
}

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#endif
template <class Struct, class Tuple, std::size_t... i>
constexpr Struct begin(const Tuple &given, std::index_sequence<i...>)
{
    return Struct{sizeof(Struct),
                  positional<std::decay_t<std::tuple_element_t<i, Tuple>>>{std::get<i>(given)}...};
}
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

} // namespace detail

/* A struct with the given fields, zero elsewhere:
 *     sx::make<sx_schedule>(sx::kind = SX_COSINE_DECAY, sx::steps = 1000) */
template <class Struct, class... Options> constexpr Struct make(const Options &...options)
{
    static_assert((detail::is_option<Options> && ...), "expected options: sx::name = value");
    Struct to{};
    (options.apply(to), ...);
    return to;
}

/* An option struct: its first fields in their order, then options by name. struct_size is set. */
template <class Struct, class... Given> constexpr Struct args(const Given &...given)
{
    constexpr std::size_t n = detail::count_positional<Given...>();
    static_assert((std::size_t{!detail::is_option<Given>} + ... + 0) == n,
                  "values in their order come before options by name");
    Struct to = detail::begin<Struct>(std::tie(given...), std::make_index_sequence<n>());
    (detail::apply(to, given), ...);
    return to;
}

/* A builder and the line of the call, which errors quote: made where the builder is passed. */
struct builder_here {
    sx_builder *builder;
    const char *file;
    int line;
    builder_here(sx_builder *b, const char *f = __builtin_FILE(), int l = __builtin_LINE())
        : builder(b), file(f), line(l)
    {
    }
};

/* The same of another object. */
template <class T> struct here {
    T *object;
    const char *file;
    int line;
    here(T *o, const char *f = __builtin_FILE(), int l = __builtin_LINE())
        : object(o), file(f), line(l)
    {
    }
    here(const unique<T> &o, const char *f = __builtin_FILE(), int l = __builtin_LINE())
        : object(o), file(f), line(l)
    {
    }
};

} // namespace sx

/* ---- The functions that are macros in C ----
 *
 * One row each: the result's type, the name, the option struct, the parameters before the options,
 * and the call of the function proper. */

#define SX_LIST_(...) __VA_ARGS__
#define SX_WITH_OPTIONS_(result, name, type, parameters, ...)                              \
    template <class... Options> result name(SX_LIST_ parameters, const Options &...options) \
    {                                                                                      \
        const type args = sx::args<type>(options...);                                      \
        return name##_at(__VA_ARGS__);                                                     \
    }
/* Of a builder; `...` are its values. */
#define SX_BUILDS_(result, name, type, parameters, ...)                                           \
    template <class... Options>                                                                   \
    result name(sx::builder_here b, SX_LIST_ parameters, const Options &...options)               \
    {                                                                                             \
        const type args = sx::args<type>(options...);                                             \
        return name##_at(b.builder, __VA_ARGS__, &args, b.file, b.line);                          \
    }
#define SX_VALUE_(name, type, kind_)                                            \
    template <class... Options> constexpr type name(const Options &...options)  \
    {                                                                           \
        type made = sx::make<type>(options...);                                 \
        made.kind = kind_;                                                      \
        return made;                                                            \
    }
#define SX_STRUCT_(name, type)                                                 \
    template <class... Options> constexpr type name(const Options &...options) \
    {                                                                          \
        return sx::args<type>(options...);                                     \
    }

/* types.h, graph.h */
#undef sx_type_of
#undef SX_NO_VALUE
#define SX_NO_VALUE (sx_value{0})
template <class... Dims> sx_type sx_type_of(sx_dtype dtype, Dims... dims)
{
    const int64_t list[] = {static_cast<int64_t>(dims)..., 0};
    return sx_type_make(dtype, static_cast<int>(sizeof...(Dims)), list);
}

/* ops.h */
#undef SX_AXES
template <class... Axes> constexpr sx_axes SX_AXES(Axes... axes)
{
    return sx_axes{static_cast<int>(sizeof...(Axes)), {static_cast<int>(axes)...}};
}
#define SX_OF_DIMS_(name, parameters, ...)                                                        \
    template <class... Dims>                                                                      \
    sx_value name(sx::builder_here b, SX_LIST_ parameters, Dims... dims)                          \
    {                                                                                             \
        const int64_t list[] = {static_cast<int64_t>(dims)..., 0};                                \
        return name##_at(b.builder, __VA_ARGS__, static_cast<int>(sizeof...(Dims)), list, b.file, \
                         b.line);                                                                 \
    }
#define SX_OF_VALUES_(name, parameters, ...)                                                    \
    template <class... Values>                                                                  \
    sx_value name(sx::builder_here b, SX_LIST_ parameters, Values... values)                    \
    {                                                                                           \
        const sx_value list[] = {values...};                                                    \
        return name##_at(b.builder, list, static_cast<int>(sizeof...(Values)), __VA_ARGS__,     \
                         b.file, b.line);                                                       \
    }
/* ---- Operators, written by tools/gen-ops: do not edit ---- */
#undef sx_reshape
#undef sx_broadcast_to
#undef sx_transpose
#undef sx_concat
#undef sx_slice
#undef sx_pad
#undef sx_mirror_pad
#undef sx_tile
#undef sx_reduce_sum
#undef sx_reduce_max
#undef sx_reduce_min
#undef sx_reduce_prod
#undef sx_reduce_all
#undef sx_reduce_any
#undef sx_size
#undef sx_reduce_mean
#undef sx_moments
#undef sx_argmax
#undef sx_argmin
#undef sx_cumsum
#undef sx_cumprod
#undef sx_cumulative_logsumexp
#undef sx_matmul
#undef sx_nn_conv2d
#undef sx_nn_max_pool2d
#undef sx_nn_avg_pool2d
#undef sx_fake_quant
#undef sx_quantize_dequantize
#undef sx_one_hot
#undef sx_nn_dropout
#undef sx_string_split_padded
#undef sx_vocabulary_lookup
#undef sx_apply_momentum
#undef sx_apply_rmsprop
#undef sx_apply_adam
SX_OF_DIMS_(sx_reshape, (sx_value x), x)
SX_OF_DIMS_(sx_broadcast_to, (sx_value x), x)
SX_OF_DIMS_(sx_transpose, (sx_value x), x)
SX_OF_VALUES_(sx_concat, (int axis), axis)
SX_BUILDS_(sx_value, sx_slice, sx_slice_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_pad, sx_pad_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_mirror_pad, sx_mirror_pad_args, (sx_value x), x)
SX_OF_DIMS_(sx_tile, (sx_value x), x)
SX_BUILDS_(sx_value, sx_reduce_sum, sx_reduce_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_reduce_max, sx_reduce_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_reduce_min, sx_reduce_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_reduce_prod, sx_reduce_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_reduce_all, sx_reduce_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_reduce_any, sx_reduce_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_size, sx_reduce_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_reduce_mean, sx_reduce_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_moments, sx_reduce_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_argmax, sx_argmax_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_argmin, sx_argmax_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_cumsum, sx_cumulative_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_cumprod, sx_cumulative_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_cumulative_logsumexp, sx_cumulative_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_matmul, sx_matmul_args, (sx_value lhs, sx_value rhs), lhs, rhs)
SX_BUILDS_(sx_value, sx_nn_conv2d, sx_nn_conv2d_args, (sx_value x, sx_value filter), x, filter)
SX_BUILDS_(sx_value, sx_nn_max_pool2d, sx_nn_pool2d_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_nn_avg_pool2d, sx_nn_pool2d_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_fake_quant, sx_fake_quant_args,
           (sx_value x, sx_value low, sx_value high),
           x, low, high)
SX_BUILDS_(sx_value, sx_quantize_dequantize, sx_quantize_dequantize_args,
           (sx_value x, sx_value low, sx_value high),
           x, low, high)
SX_BUILDS_(sx_value, sx_one_hot, sx_one_hot_args, (sx_value indices), indices)
SX_BUILDS_(sx_value, sx_nn_dropout, sx_nn_dropout_args,
           (sx_value x, sx_value seed, sx_value step),
           x, seed, step)
SX_BUILDS_(sx_value, sx_string_split_padded, sx_string_split_padded_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_vocabulary_lookup, sx_vocabulary_lookup_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_apply_momentum, sx_apply_momentum_args,
           (sx_value var, sx_value accum, sx_value gradient, sx_value lr, sx_value ok),
           var, accum, gradient, lr, ok)
SX_BUILDS_(sx_value, sx_apply_rmsprop, sx_apply_rmsprop_args,
           (sx_value var, sx_value rms, sx_value mean, sx_value mom, sx_value gradient, sx_value lr,
            sx_value ok),
           var, rms, mean, mom, gradient, lr, ok)
SX_BUILDS_(sx_value, sx_apply_adam, sx_apply_adam_args,
           (sx_value var, sx_value m, sx_value v, sx_value gradient, sx_value lr, sx_value step,
            sx_value ok),
           var, m, v, gradient, lr, step, ok)
/* ---- End of what tools/gen-ops writes ---- */
#undef SX_OF_DIMS_
#undef SX_OF_VALUES_

/* nn.h, model.h */
#undef sx_dense
#undef sx_conv2d
#undef sx_max_pool2d
#undef sx_average_pool2d
#undef sx_batch_norm
#undef sx_cross_shard_optimizer
#undef sx_sgd
#undef sx_rmsprop
#undef sx_adam
#undef sx_lars
#undef sx_classifier_spec
#undef sx_compute_average_loss
#undef sx_minimize
#undef SX_MODEL_DEF
#undef SX_MODEL
SX_BUILDS_(sx_value, sx_dense, sx_dense_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_conv2d, sx_conv2d_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_max_pool2d, sx_pool2d_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_average_pool2d, sx_pool2d_args, (sx_value x), x)
SX_BUILDS_(sx_value, sx_batch_norm, sx_batch_norm_args, (sx_value x), x)
SX_BUILDS_(sx_spec, sx_classifier_spec, sx_classifier_args, (sx_value logits, sx_value labels), logits,
           labels)
SX_BUILDS_(sx_value, sx_compute_average_loss, sx_average_loss_args, (sx_value per_example_loss),
           per_example_loss)
SX_BUILDS_(void, sx_minimize, sx_minimize_args, (sx_value loss), loss)
SX_WITH_OPTIONS_(sx_optimizer, sx_cross_shard_optimizer, sx_cross_shard_args,
                 (sx_optimizer optimizer), optimizer, &args)
SX_VALUE_(sx_sgd, sx_optimizer, SX_OPTIMIZER_SGD)
SX_VALUE_(sx_rmsprop, sx_optimizer, SX_OPTIMIZER_RMSPROP)
SX_VALUE_(sx_adam, sx_optimizer, SX_OPTIMIZER_ADAM)
SX_VALUE_(sx_lars, sx_optimizer, SX_OPTIMIZER_LARS)

/* A row of sx::inputs or sx::labels: sx_feature_of("city", SX_I32), and options by name. */
template <class... Options>
constexpr sx_feature_spec sx_feature_of(const char *name, sx_dtype dtype, const Options &...options)
{
    sx_feature_spec row = sx::make<sx_feature_spec>(options...);
    row.name = name;
    row.dtype = dtype;
    return row;
}
#undef sx_feature
#undef sx_label
inline sx_value sx_feature(sx::builder_here b, const sx_batch *in, const char *name)
{
    return sx_feature_at(b.builder, in, name, b.file, b.line);
}
inline sx_value sx_label(sx::builder_here b, const sx_batch *in, const char *name)
{
    return sx_label_at(b.builder, in, name, b.file, b.line);
}

/* A descriptor: const sx_model_def net = SX_MODEL_DEF(sx::name = "net", sx::build = build, …); */
template <class... Options> constexpr sx_model_def SX_MODEL_DEF(const Options &...options)
{
    return sx::args<sx_model_def>(sx::version = SX_MODEL_VERSION, options...);
}
/* SX_MODEL(net, sx::build = build, sx::image = {28, 28, 1}), in a model file, at file scope. An
 * exception that leaves the model function is reported as its error. */
#define SX_MODEL(model_name, ...)                                                          \
    static sx_spec sx_model_build_(sx_builder *b, const sx_batch *in, const sx_params *p)  \
    {                                                                                      \
        static const sx_model_def def = SX_MODEL_DEF(__VA_ARGS__);                         \
        return sx::detail::caught(__FILE__, b, [&] { return def.build(b, in, p); });       \
    }                                                                                      \
    static void sx_model_preprocess_(sx_builder *b, const sx_batch *in, const sx_params *p)\
    {                                                                                      \
        static const sx_model_def def = SX_MODEL_DEF(__VA_ARGS__);                         \
        sx::detail::caught(__FILE__, b, [&] { def.preprocess(b, in, p); });                \
    }                                                                                      \
    extern "C" {                                                                           \
    SX_API extern const sx_model_def sextant_model_v1;                                     \
    const sx_model_def sextant_model_v1 =                                                  \
        SX_MODEL_DEF(sx::name = #model_name, __VA_ARGS__,                                  \
                     sx::build = SX_MODEL_DEF(__VA_ARGS__).build != nullptr                \
                                     ? sx_model_build_                                     \
                                     : nullptr,                                            \
                     sx::preprocess = SX_MODEL_DEF(__VA_ARGS__).preprocess != nullptr      \
                                          ? sx_model_preprocess_                           \
                                          : nullptr);                                      \
    }
namespace sx
{
namespace detail
{
/* f(), a model's function; an exception that leaves it is the builder's error. */
template <class F> auto caught(const char *file, sx_builder *b, const F &f) -> decltype(f())
{
#if defined(__cpp_exceptions)
    try {
        return f();
    } catch (const std::exception &e) {
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT,
                                    "%s: the model function threw an exception: %s", file,
                                    e.what()));
    } catch (...) {
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT,
                                    "%s: the model function threw an exception that is not a "
                                    "std::exception", file));
    }
    return decltype(f())();
#else
    (void)file;
    (void)b;
    return f();
#endif
}
} // namespace detail
} // namespace sx

/* data.h */
#undef sx_dataset_shuffle
#undef sx_dataset_map
#undef sx_dataset_batch
#undef sx_image_pipeline
#undef sx_iterator_create
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_dataset_shuffle, sx_shuffle_args, (sx_dataset **dataset),
                 dataset, &args)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_dataset_map, sx_map_args, (sx_dataset **dataset), dataset,
                 &args)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_dataset_batch, sx_batch_args, (sx_dataset **dataset),
                 dataset, &args)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_image_pipeline, sx_image_args, (sx_dataset **dataset),
                 dataset, &args)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_iterator_create, sx_iterator_args,
                 (sx_dataset *dataset, sx_iterator **out_iterator), dataset, &args, out_iterator)

/* distribute.h */
#undef sx_list_devices
#undef sx_tpu_cluster_resolve
#undef sx_one_device_strategy
#undef sx_mirrored_strategy
#undef sx_placed_strategy
#undef sx_central_storage_strategy
#undef sx_tpu_strategy
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_list_devices, sx_list_devices_args,
                 (sx_device_list **out_list), &args, out_list)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_tpu_cluster_resolve, sx_tpu_request,
                 (sx_tpu_cluster **out_cluster), &args, out_cluster)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_one_device_strategy, sx_strategy_args,
                 (sx_strategy **out_strategy), &args, out_strategy)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_mirrored_strategy, sx_strategy_args,
                 (sx_strategy **out_strategy), &args, out_strategy)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_placed_strategy, sx_strategy_args,
                 (sx_strategy **out_strategy), &args, out_strategy)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_central_storage_strategy, sx_strategy_args,
                 (sx_strategy **out_strategy), &args, out_strategy)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_tpu_strategy, sx_tpu_strategy_args,
                 (sx_strategy **out_strategy), &args, out_strategy)

/* device.h */
#undef sx_devices_open
#undef sx_compile_graph
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_devices_open, sx_devices_args,
                 (sx_devices **out_devices), &args, out_devices)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_compile_graph, sx_compile_graph_args,
                 (sx_devices *devices, const sx_graph *graph, int64_t batch,
                  sx_compiled_graph **out_program),
                 devices, graph, batch, &args, out_program)

/* train.h */
#undef sx_run_config_of
#undef sx_train_spec_of
#undef sx_eval_spec_of
#undef sx_tpu_estimator_create
#undef sx_estimator_train
#undef sx_estimator_evaluate
#undef sx_estimator_predict
#undef sx_estimator_export_saved_model
#undef sx_model_compile
#undef sx_model_fit
#undef sx_model_to
SX_STRUCT_(sx_run_config_of, sx_run_config)
SX_STRUCT_(sx_train_spec_of, sx_train_spec)
SX_STRUCT_(sx_eval_spec_of, sx_eval_spec)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_tpu_estimator_create, sx_tpu_estimator_args,
                 (const sx_model_def *model, sx_estimator **out_estimator), model, &args,
                 out_estimator)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_estimator_train, sx_train_args,
                 (sx_estimator *e, sx_input_fn *input, void *user), e, input, user, &args)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_estimator_evaluate, sx_evaluate_args,
                 (sx_estimator *e, sx_input_fn *input, void *user, sx_eval_result *out_result), e,
                 input, user, &args, out_result)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_estimator_predict, sx_evaluate_args,
                 (sx_estimator *e, sx_input_fn *input, void *user, sx_prediction_fn *row,
                  void *row_user),
                 e, input, user, row, row_user, &args)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_estimator_export_saved_model, sx_export_args,
                 (sx_estimator *e, const char *base, char **out_dir), e, base, &args, out_dir)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_model_compile, sx_compile_args, (sx_model *m), m, &args)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_model_fit, sx_fit_args, (sx_model *m, sx_dataset *data),
                 m, data, &args)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_model_to, sx_to_args, (sx_model *m), m, &args)

/* function_train.h */
#undef sx_library_add_training
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_library_add_training, sx_training_function_args,
                 (sx_library *library, const char *name, const char *model), library, name, model,
                 &args)

/* runtime.h */
#undef sx_training_open
#undef sx_distribute_dataset
#undef sx_distribute_datasets_from_function
#undef sx_training_add_step
#undef sx_metric_create
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_training_open, sx_training_args,
                 (const sx_model_def *model, sx_training **out_training), model, &args,
                 out_training)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_distribute_dataset, sx_distribute_args,
                 (sx::here<sx_strategy> strategy, sx_dataset *dataset,
                  sx_distributed **out_distributed),
                 strategy.object, dataset, &args, out_distributed, strategy.file, strategy.line)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_distribute_datasets_from_function, sx_distribute_args,
                 (sx::here<sx_strategy> strategy, sx_input_fn *fn, void *user,
                  sx_distributed **out_distributed),
                 strategy.object, fn, user, &args, out_distributed, strategy.file, strategy.line)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_training_add_step, sx_step_args,
                 (sx::here<sx_training> t, sx_step_build_fn *build, sx_step_program **out_step), t.object,
                 build, &args, out_step, t.file, t.line)
SX_WITH_OPTIONS_([[nodiscard]] sx_status, sx_metric_create, sx_metric_args,
                 (sx_metric_object **out_metric), &args, out_metric)

#undef SX_WITH_OPTIONS_
#undef SX_BUILDS_
#undef SX_VALUE_
#undef SX_STRUCT_
#undef SX_LIST_

/* ---- Ownership and errors ---- */

namespace sx {
namespace detail {

inline void destroy(sx_builder *p) { sx_builder_destroy(p); }
inline void destroy(sx_graph *p) { sx_graph_destroy(p); }
inline void destroy(sx_dataset *p) { sx_dataset_release(p); }
inline void destroy(sx_devices *p) { sx_devices_close(p); }
inline void destroy(sx_buffer *p) { sx_buffer_free(p); }
inline void destroy(sx_compiled_graph *p) { sx_compiled_graph_free(p); }
inline void destroy(sx_event *p) { sx_event_free(p); }
inline void destroy(sx_training *p) { sx_training_free(p); }
inline void destroy(sx_distributed *p) { sx_distributed_free(p); }
inline void destroy(sx_metric_object *p) { sx_metric_free(p); }
inline void destroy(sx_iterator *p) { sx_iterator_destroy(p); }
inline void destroy(sx_device_list *p) { sx_device_list_free(p); }
inline void destroy(sx_tpu_cluster *p) { sx_tpu_cluster_free(p); }
inline void destroy(sx_strategy *p) { sx_strategy_release(p); }
inline void destroy(sx_estimator *p) { sx_estimator_destroy(p); }
inline void destroy(sx_model *p) { sx_model_destroy(p); }
inline void destroy(sx_servable *p) { sx_servable_release(p); }
inline void destroy(sx_library *p) { sx_library_destroy(p); }
inline void destroy(sx_functions *p) { sx_functions_close(p); }
inline void destroy(sx_results *p) { sx_results_free(p); }
inline void destroy(sx_outputs *p) { sx_outputs_free(p); }
inline void destroy(sx_client *p) { sx_client_close(p); }
inline void destroy(sx_client_answer *p) { sx_client_answer_free(p); }
inline void destroy(char *p) { sx_text_free(p); }

} // namespace detail

/* Owns an object of the library, or nothing; passes as a plain pointer:
 *     sx::unique<sx_dataset> data;
 *     sx::check(sx_data_open("data/train-*", nullptr, data.out(), nullptr));
 *     sx::check(sx_dataset_shuffle(data.inout(), sx::seed = 7)); */
template <class T> class unique
{
  public:
    unique() = default;
    explicit unique(T *owned) : pointer(owned) {}
    unique(unique &&other) noexcept : pointer(other.release()) {}
    unique &operator=(unique &&other) noexcept
    {
        reset(other.release());
        return *this;
    }
    ~unique() { reset(); }

    operator T *() const { return pointer; }
    T *get() const { return pointer; }
    T *operator->() const { return pointer; }
    T **out() /* for a function that makes the object; frees what is owned so far */
    {
        reset();
        return &pointer;
    }
    T **inout() { return &pointer; } /* for a function that replaces the object */
    T *release() { return std::exchange(pointer, nullptr); }
    void reset(T *owned = nullptr)
    {
        T *before = std::exchange(pointer, owned);
        if (before != nullptr) {
            detail::destroy(before);
        }
    }

  private:
    T *pointer = nullptr;
};

/* A device scope that ends with its block: { sx::device_scope on(b, "/cpu:1"); … }. */
class device_scope
{
  public:
    device_scope(sx_builder *b, const char *device) : builder(b)
    {
        sx_device_scope_begin(b, device);
    }
    device_scope(const device_scope &) = delete;
    device_scope &operator=(const device_scope &) = delete;
    ~device_scope() { sx_device_scope_end(builder); }

  private:
    sx_builder *builder;
};

/* An sx_status that is not OK, as an exception. */
class error : public std::exception
{
  public:
    explicit error(sx_status status) /* takes it */
        : code_(sx_status_code(status)), message_(sx_status_message(status))
    {
        sx_status_free(status);
    }
    sx_code code() const noexcept { return code_; }
    const char *what() const noexcept override { return message_.c_str(); }

  private:
    sx_code code_;
    std::string message_;
};

#if defined(__cpp_exceptions)
inline void check(sx_status status)
{
    if (status != SX_OK) {
        throw error(status);
    }
}
#endif

} // namespace sx

#endif
