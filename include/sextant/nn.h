/* Layers, losses, metrics, optimizers and schedules: the building blocks of model functions.
 *
 * A layer creates its variables in a scope numbered as in Keras (conv2d, conv2d_1, …), so
 * checkpoints have names such as `conv2d_1/kernel`. Options are fields: sx_conv2d(b, x, 32, 3,
 * .padding = SX_SAME, .activation = SX_RELU); an omitted field takes the default in its comment.
 * Images are NHWC. */
#ifndef SEXTANT_NN_H
#define SEXTANT_NN_H

#include <sextant/graph.h>
#include <sextant/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sx_mode { SX_TRAIN = 0, SX_EVAL, SX_PREDICT } sx_mode;

/* The mode, for layers that behave differently in training (dropout, batch norm). Set it before
 * building. */
SX_API void sx_builder_set_mode(sx_builder *b, sx_mode mode);
SX_API sx_mode sx_builder_mode(const sx_builder *b);

/* The precision policy, set before building: SX_F32 (the default) or SX_BF16, which is Keras'
 * mixed_bfloat16: layers convert their inputs and variables to bfloat16 and return bfloat16;
 * variables, gradients, batch-norm statistics, softmax, losses, metrics and the model's results
 * stay float32. If an operator called by the user gets both types, constants and variables are
 * converted to bfloat16; any other float32 operand makes the result float32.
 * Errors: INVALID_ARGUMENT: another dtype. */
SX_API void sx_builder_set_precision(sx_builder *b, sx_dtype compute);
SX_API sx_dtype sx_builder_precision(const sx_builder *b); /* SX_F32 or SX_BF16 */

typedef enum sx_activation {
    SX_LINEAR = 0,
    SX_RELU,
    SX_RELU6,
    SX_SIGMOID,
    SX_TANH,
    SX_SOFTMAX,
    SX_ACTIVATION_COUNT_
} sx_activation;
/* y = activation(x), any shape; softmax over the last axis. */
SX_API sx_value sx_activate(sx_builder *b, sx_value x, sx_activation activation);

/* Zero, for a field in which 0 means the default. */
#define SX_ZERO (-0x1p-1000)

/* ---- Layers ---- */

typedef struct sx_dense_args {
    size_t struct_size;
    int64_t units;
    sx_activation activation;
    bool no_bias;
    sx_initializer kernel_initializer; /* glorot_uniform */
    sx_initializer bias_initializer;   /* zeros */
    const char *name;                  /* "dense" */
} sx_dense_args;
/* y = activation(x W + b); x [N,K], W `kernel` [K,units], b `bias` [units]; y [N,units].
 * Errors: a rank other than 2 (add sx_flatten()), units < 1. Source: Keras Dense. */
SX_API sx_value sx_dense_at(sx_builder *b, sx_value x, const sx_dense_args *args, const char *file,
                            int line);
#define sx_dense(b, x, ...) sx_dense_at((b), (x), SX_ARGS_(sx_dense_args, __VA_ARGS__), SX_HERE_)

typedef struct sx_conv2d_args {
    size_t struct_size;
    int64_t filters;
    int64_t kernel;       /* kernel height and width */
    int64_t kernel_width; /* if not square */
    int64_t strides;      /* 1 */
    int64_t dilation;     /* 1 */
    int64_t groups;       /* 1 */
    sx_padding padding;   /* SX_VALID */
    sx_activation activation;
    bool no_bias;
    sx_initializer kernel_initializer; /* glorot_uniform */
    sx_initializer bias_initializer;   /* zeros */
    const char *name;                  /* "conv2d" */
} sx_conv2d_args;
/* x [N,H,W,C]; `kernel` [kh,kw,C/groups,filters], `bias` [filters]; y [N,H',W',filters].
 * Errors: rank other than 4, filters or kernel < 1, channels not divisible by groups.
 * Source: Keras Conv2D. */
SX_API sx_value sx_conv2d_at(sx_builder *b, sx_value x, const sx_conv2d_args *args,
                             const char *file, int line);
#define sx_conv2d(b, x, ...) sx_conv2d_at((b), (x), SX_ARGS_(sx_conv2d_args, __VA_ARGS__), SX_HERE_)

typedef struct sx_pool2d_args {
    size_t struct_size;
    int64_t pool;       /* window height and width */
    int64_t strides;    /* = pool */
    sx_padding padding; /* SX_VALID */
    const char *name;
} sx_pool2d_args;
/* The maximum or mean of each window; windows at the border cover only the elements inside. */
SX_API sx_value sx_max_pool2d_at(sx_builder *b, sx_value x, const sx_pool2d_args *args,
                                 const char *file, int line);
SX_API sx_value sx_average_pool2d_at(sx_builder *b, sx_value x, const sx_pool2d_args *args,
                                     const char *file, int line);
#define sx_max_pool2d(b, x, ...) \
    sx_max_pool2d_at((b), (x), SX_ARGS_(sx_pool2d_args, __VA_ARGS__), SX_HERE_)
#define sx_average_pool2d(b, x, ...) \
    sx_average_pool2d_at((b), (x), SX_ARGS_(sx_pool2d_args, __VA_ARGS__), SX_HERE_)
/* [N,H,W,C] -> [N,C]. */
SX_API sx_value sx_global_average_pool2d_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_global_average_pool2d(b, x) sx_global_average_pool2d_at((b), (x), __FILE__, __LINE__)

/* [N,...] -> [N, product]. */
SX_API sx_value sx_flatten_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_flatten(b, x) sx_flatten_at((b), (x), __FILE__, __LINE__)

/* In training each element becomes 0 with probability `rate`, otherwise x / (1 − rate); the mask is
 * a function of seed, scope, step and position. In other modes, x. Errors: rate not in
 * [0, 1). */
SX_API sx_value sx_dropout_at(sx_builder *b, sx_value x, double rate, const char *file, int line);
#define sx_dropout(b, x, rate) sx_dropout_at((b), (x), (rate), __FILE__, __LINE__)

typedef struct sx_batch_norm_args {
    size_t struct_size;
    double momentum; /* .99 */
    double epsilon;  /* 1e-3 */
    bool no_scale, no_center;
    sx_initializer gamma_initializer; /* ones */
    const char *name;                 /* "batch_normalization" */
} sx_batch_norm_args;
/* y = gamma (x − mean) / sqrt(var + epsilon) + beta over the last axis. Training uses the moments
 * of the batch and updates the moving averages: moving = moving·momentum + batch·(1 − momentum),
 * with the biased variance, as in Keras 3 and TensorFlow 1's unfused batch norm (Keras 2 and the
 * fused one multiply it by n / (n − 1)); other modes use the averages. Variables: gamma, beta,
 * moving_mean, moving_variance. Errors: momentum outside [0, 1], a negative epsilon. */
SX_API sx_value sx_batch_norm_at(sx_builder *b, sx_value x, const sx_batch_norm_args *args,
                                 const char *file, int line);
#define sx_batch_norm(b, x, ...) \
    sx_batch_norm_at((b), (x), SX_ARGS_(sx_batch_norm_args, __VA_ARGS__), SX_HERE_)

/* ---- Schedules and optimizers ---- */

typedef enum sx_schedule_kind {
    SX_CONSTANT_RATE = 0,
    SX_EXPONENTIAL_DECAY, /* lr · rate^(step / steps); staircase: with integer division */
    SX_PIECEWISE,         /* values[i] while step <= boundaries[i], then the last value */
    SX_COSINE_DECAY, /* lr · ((1 − alpha)·(1 + cos(π·step / steps)) / 2 + alpha), then lr·alpha */
} sx_schedule_kind;

enum { SX_MAX_PIECES = 8 };

/* The learning rate as a function of the step, computed inside the training program. A warm-up
 * increases the rate linearly from 0 to the schedule's initial value over `warmup_steps` and delays
 * the schedule by as many. With `in_epochs`, `steps` and `boundaries` are in epochs; boundaries and
 * the end of a cosine decay count from step 0, including the warm-up. */
typedef struct sx_schedule {
    sx_schedule_kind kind;
    double rate, alpha;
    int64_t steps, warmup_steps;
    double warmup_epochs; /* alternative to warmup_steps */
    bool staircase, in_epochs;
    int n_boundaries;
    int64_t boundaries[SX_MAX_PIECES];
    double values[SX_MAX_PIECES + 1]; /* factors of the learning rate */
} sx_schedule;

typedef enum sx_optimizer_kind {
    SX_OPTIMIZER_DEFAULT = 0, /* Adam */
    SX_OPTIMIZER_SGD,
    SX_OPTIMIZER_RMSPROP,
    SX_OPTIMIZER_ADAM,
    SX_OPTIMIZER_LARS,
    SX_OPTIMIZER_COUNT_
} sx_optimizer_kind;

/* How the gradients of n replicas are combined. MEAN: the gradient of the mean loss over the global
 * batch. SUM: n times that (the sum of the replicas' mean losses), with the n that the run started
 * with. The reported loss is the mean over the global batch in both cases. */
typedef enum sx_reduction { SX_REDUCTION_MEAN = 0, SX_REDUCTION_SUM } sx_reduction;

/* An optimizer and its parameters. A field that is 0 takes the optimizer's default (Keras'), listed
 * at sx_sgd, sx_rmsprop, sx_adam and sx_lars below; SX_ZERO is 0. Refused when the program is
 * built: a negative or infinite field, momentum or rho above 1, beta_1 or beta_2 of 1 or more. */
typedef struct sx_optimizer {
    sx_optimizer_kind kind;
    double learning_rate;
    double momentum;
    double rho, beta_1, beta_2, epsilon, eeta;
    bool nesterov, centered;
    sx_schedule schedule;
    /* Reference batch size: if > 0, the rate scales linearly with the global batch size
     * (learning_rate · batch / base_batch_size). */
    int64_t base_batch_size;
    /* If > 0, l2 · Σ w²/2 over all weights except batch norm's gamma and beta is added to the loss.
     * For LARS, the weight decay, which is not part of the loss. */
    double l2;
    sx_reduction reduction;
    double initial_accumulator_value; /* RMSprop's first mean square: 0; 1 as in TensorFlow 1 */
} sx_optimizer;

typedef struct sx_cross_shard_args {
    size_t struct_size;
    sx_reduction reduction;
} sx_cross_shard_args;
/* TensorFlow's CrossShardOptimizer: sets how the replicas' gradients are combined. Gradients are
 * always combined here; without this call the reduction is SX_REDUCTION_MEAN. */
SX_API sx_optimizer sx_cross_shard_optimizer_at(sx_optimizer optimizer,
                                                const sx_cross_shard_args *args);
#define sx_cross_shard_optimizer(optimizer, ...) \
    sx_cross_shard_optimizer_at((optimizer), SX_ARGS_(sx_cross_shard_args, __VA_ARGS__))

/* learning_rate .01, momentum 0: v = momentum·v − lr·g; w += v (nesterov: w += momentum·v − lr·g)
 */
#define sx_sgd(...) ((sx_optimizer){.kind = SX_OPTIMIZER_SGD, __VA_ARGS__})
/* learning_rate .001, rho .9, momentum 0, epsilon 1e-7 (inside the root). The slots are named as in
 * TensorFlow 1, in this order: mean square, mean gradient (if centered), momentum. As in Keras, a
 * momentum of 0 has no slot, and the mean square starts at 0. */
#define sx_rmsprop(...) ((sx_optimizer){.kind = SX_OPTIMIZER_RMSPROP, __VA_ARGS__})
/* learning_rate .001, beta_1 .9, beta_2 .999, epsilon 1e-7 (outside the root) */
#define sx_adam(...) ((sx_optimizer){.kind = SX_OPTIMIZER_ADAM, __VA_ARGS__})
/* learning_rate .1, momentum .9, eeta .001, epsilon 0: the rate of each weight is lr·eeta·‖w‖ /
 * (‖g‖ + l2·‖w‖ + epsilon); that of biases and batch norm's variables is lr, without decay */
#define sx_lars(...) ((sx_optimizer){.kind = SX_OPTIMIZER_LARS, __VA_ARGS__})

/* An optimizer by name: "sgd", "momentum" (sgd with momentum .9), "rmsprop", "adam", "lars".
 * Errors: NOT_FOUND, listing the names. */
SX_API SX_MUST_USE sx_status sx_optimizer_by_name(const char *name, sx_optimizer *out_optimizer);

/* ---- Training steps of your own (sextant/runtime.h) ---- */

typedef struct sx_average_loss_args {
    size_t struct_size;
    sx_value sample_weight;    /* float32 [N]; default: 1 for each example */
    int64_t global_batch_size; /* to divide by; default: N, the examples of all replicas */
} sx_average_loss_args;
/* Σ per_example_loss · sample_weight / N, a float32 scalar, over the batch of all replicas: each of
 * them gets the same number. per_example_loss [N], float32 or bfloat16. As in TensorFlow, N is the
 * number of examples, not the sum of their weights. Errors: another shape or dtype, a negative
 * global_batch_size. Source: tf.nn.compute_average_loss. */
SX_API sx_value sx_compute_average_loss_at(sx_builder *b, sx_value per_example_loss,
                                           const sx_average_loss_args *args, const char *file,
                                           int line);
#define sx_compute_average_loss(b, per_example_loss, ...) \
    sx_compute_average_loss_at((b), (per_example_loss),   \
                               SX_ARGS_(sx_average_loss_args, __VA_ARGS__), SX_HERE_)

typedef struct sx_minimize_args {
    size_t struct_size;
    sx_optimizer optimizer; /* Adam */
} sx_minimize_args;
/* Adds the gradients of the loss, float32 [], with respect to all weights of the program so far,
 * the optimizer's updates of those that it depends on, and the step, global_step. Outputs
 * "learning_rate" and "ok", a bool: if the loss or a gradient is not finite, it is false, and no
 * variable changes, those assigned before included. The optimizer's l2 is added to the loss. Once
 * in a program, in SX_TRAIN; the last of what the step adds. Errors: those; an invalid optimizer;
 * an operator without a gradient. Source: tf.keras.optimizers.Optimizer.minimize. */
SX_API void sx_minimize_at(sx_builder *b, sx_value loss, const sx_minimize_args *args,
                           const char *file, int line);
#define sx_minimize(b, loss, ...) \
    sx_minimize_at((b), (loss), SX_ARGS_(sx_minimize_args, __VA_ARGS__), SX_HERE_)

#ifdef __cplusplus
}
#endif
#endif
