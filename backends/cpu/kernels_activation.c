// SPDX-License-Identifier: Apache-2.0
// Activations of one float tensor, element by element. Relu is also defined for signed integers.
#include "loop.h"
#include "unary.h"

#define NONE "", 0, "", 0
#define ALPHA(value) "alpha", value, "", 0

static inline float hard_sigmoid_f32(float x, float alpha, float beta) {
  float y = alpha * x + beta;
  y = y > 1.0f ? 1.0f : y;
  return y < 0.0f ? 0.0f : y;
}

static inline double hard_sigmoid_f64(double x, double alpha, double beta) {
  double y = alpha * x + beta;
  y = y > 1.0 ? 1.0 : y;
  return y < 0.0 ? 0.0 : y;
}

/* x * tanh(log(1 + e^x)), with e^x alone; beyond 20 the factor is 1. */
static inline float mish_f32(float x) {
  float e = cpu_expf(x > 20.0f ? 20.0f : x);
  float n = e * (e + 2.0f);
  return x > 20.0f ? x : x * (n / (n + 2.0f));
}

static inline double softplus_f64(double x) {
  return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static inline float shrink_f32(float x, float limit, float bias) {
  return x < -limit ? x + bias : x > limit ? x - bias : x == x ? 0.0f : x;
}

static inline double shrink_f64(double x, double limit, double bias) {
  return x < -limit ? x + bias : x > limit ? x - bias : x == x ? 0.0 : x;
}

#define GELU_TANH_ARGUMENT(x) (0.7978845608028654f * ((x) + 0.044715f * (x) * (x) * (x)))
#define GELU_TANH_ARGUMENT_F64(x) (0.7978845608028654 * ((x) + 0.044715 * (x) * (x) * (x)))

#define ACTIVATION_OPS(X)                                                                                  \
  X(LeakyRelu, x < 0 ? alpha * x : x, x < 0 ? alpha * x : x, 1, ALPHA(0.01))                               \
  X(Elu, x < 0 ? alpha * cpu_expm1f(x) : x, x < 0 ? alpha * expm1(x) : x, 4, ALPHA(1.0))                   \
  X(Celu, x < 0 ? alpha * cpu_expm1f(x / alpha) : x, x < 0 ? alpha * expm1(x / alpha) : x, 4, ALPHA(1.0))  \
  X(Selu, beta *(x < 0 ? alpha * cpu_expm1f(x) : x), beta *(x < 0 ? alpha * expm1(x) : x), 4, "alpha",     \
    1.67326319217681884765625, "gamma", 1.05070102214813232421875)                                         \
  X(Sigmoid, cpu_sigmoidf(x), 1.0 / (1.0 + exp(-x)), 5, NONE)                                              \
  X(Tanh, cpu_tanhf(x), tanh(x), 6, NONE)                                                                  \
  X(HardSigmoid, hard_sigmoid_f32(x, alpha, beta), hard_sigmoid_f64(x, alpha, beta), 1, "alpha", 0.2,      \
    "beta", 0.5)                                                                                           \
  X(HardSwish, x *hard_sigmoid_f32(x, 1.0f / 6.0f, 0.5f), x *hard_sigmoid_f64(x, 1.0 / 6.0, 0.5), 1, NONE) \
  X(Softplus, cpu_softplusf(x), softplus_f64(x), 12, NONE)                                                 \
  X(Swish, x *cpu_sigmoidf(alpha *x), x / (1.0 + exp(-alpha * x)), 5, ALPHA(1.0))                          \
  X(Softsign, x / (1.0f + fabsf(x)), x / (1.0 + fabs(x)), 2, NONE)                                         \
  X(ThresholdedRelu, x <= alpha ? 0.0f : x, x <= alpha ? 0.0 : x, 1, ALPHA(1.0))                           \
  X(Mish, mish_f32(x), x *tanh(softplus_f64(x)), 6, NONE)                                                  \
  X(Shrink, shrink_f32(x, alpha, beta), shrink_f64(x, alpha, beta), 1, "lambd", 0.5, "bias", 0.0)

/* The two forms of Gelu, by the name of the variant. */
#define GELU_OPS(X)                                                  \
  X(GeluErf, 0.5f * x * (1.0f + cpu_erff(x * 0.70710678118654752f)), \
    0.5 * x * (1.0 + erf(x * 0.70710678118654752)), 8, NONE)         \
  X(GeluTanh, 0.5f * x * (1.0f + cpu_tanhf(GELU_TANH_ARGUMENT(x))),  \
    0.5 * x * (1.0 + tanh(GELU_TANH_ARGUMENT_F64(x))), 8, NONE)

#define RELU_OPS(X) X(Relu, x < 0 ? 0.0f : x, x < 0 ? 0.0 : x, 1, NONE)

ACTIVATION_OPS(CPU_UNARY_LOOPS)
GELU_OPS(CPU_UNARY_LOOPS)
RELU_OPS(CPU_UNARY_LOOPS)

static const cpu_unary_entry_t entries[] = {ACTIVATION_OPS(CPU_UNARY_ENTRY) GELU_OPS(CPU_UNARY_ENTRY)
                                                RELU_OPS(CPU_UNARY_ENTRY)};

enum { ENTRY_COUNT = sizeof entries / sizeof entries[0] };

static cleave_status_t prepare_unary(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  return cpu_unary_prepare(prepare, state, entries, ENTRY_COUNT, NULL, message);
}

static cleave_status_t prepare_gelu(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  const char *mode = cleave_view_string(prepare->node, "approximate", "none");
  bool is_tanh = cleave_view_text_equal(mode, "tanh");
  if (!is_tanh && !cleave_view_text_equal(mode, "none")) {
    return cpu_fail(message, CLEAVE_ERROR_UNSUPPORTED, "approximate is '%s', expected none or tanh", mode);
  }
  return cpu_unary_prepare(prepare, state, entries, ENTRY_COUNT, is_tanh ? "GeluTanh" : "GeluErf", message);
}

#define RELU_ROW(name, T)                                                                                  \
  static void name(void *context, unsigned char *const *pointers, const int64_t *strides, int64_t count) { \
    (void)context;                                                                                         \
    (void)strides;                                                                                         \
    T *out = (T *)(void *)pointers[0];                                                                     \
    const T *in = (const T *)(const void *)pointers[1];                                                    \
    CPU_INDEPENDENT                                                                                        \
    for (int64_t k = 0; k < count; k++) {                                                                  \
      T x = in[k];                                                                                         \
      out[k] = (T)(x < 0 ? 0 : x);                                                                         \
    }                                                                                                      \
  }

RELU_ROW(relu_i8, int8_t)
RELU_ROW(relu_i16, int16_t)
RELU_ROW(relu_i32, int32_t)
RELU_ROW(relu_i64, int64_t)

typedef struct relu_state {
  cpu_unary_state_t unary; /* first: cpu_unary_run reads it as the state of the call */
  cpu_row_fn_t integer;    /* NULL for floats */
} relu_state_t;

static cleave_status_t prepare_relu(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  relu_state_t *self = state;
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  if (cpu_output_dtype(prepare, 0) == dtype) {
    self->integer = dtype == CLEAVE_DTYPE_I8    ? relu_i8
                    : dtype == CLEAVE_DTYPE_I16 ? relu_i16
                    : dtype == CLEAVE_DTYPE_I32 ? relu_i32
                    : dtype == CLEAVE_DTYPE_I64 ? relu_i64
                                                : NULL;
  }
  return self->integer != NULL ? CLEAVE_OK : prepare_unary(prepare, &self->unary, message);
}

static cleave_status_t run_relu(const cpu_call_t *call, cleave_message_t *message) {
  const relu_state_t *state = call->state;
  if (state->integer == NULL) {
    return cpu_unary_run(call, message);
  }
  cleave_status_t status = cpu_output_shape(call, 0, call->inputs[0]->rank, call->inputs[0]->dims, message);
  if (status == CLEAVE_OK) {
    cpu_loop_t loop;
    cpu_loop_broadcast(&loop, call->outputs[0], call->inputs, 1);
    cpu_loop_run(call, &loop, state->integer, NULL, 1);
  }
  return status;
}

const cpu_kernel_t cpu_kernels_activation[] = {
    ACTIVATION_OPS(CPU_UNARY_KERNEL){.op = "Gelu",
                                     .state_size = sizeof(cpu_unary_state_t),
                                     .prepare = prepare_gelu,
                                     .run = cpu_unary_run,
                                     .inplace = 1,
                                     .required_inputs = 1},
    {.op = "Relu",
     .state_size = sizeof(relu_state_t),
     .prepare = prepare_relu,
     .run = run_relu,
     .inplace = 1,
     .required_inputs = 1},
    {0},
};
