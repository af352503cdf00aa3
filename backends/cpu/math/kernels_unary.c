// SPDX-License-Identifier: Apache-2.0
// Operators of one tensor, element by element: each KERNEL_UNARY of kernels/operators.inc is a loop over
// floats, one over doubles, and a kernel; each KERNEL_UNARY_INTEGER a loop per integer type. Float16 and
// bfloat16 go through the float loop in blocks. Integers wrap.
#include "cpu/common/loop.h"
#include "kernels/vector_math.h"

typedef void (*unary_f32_t)(const float *x, float *y, int64_t count, float alpha, float beta);
typedef void (*unary_f64_t)(const double *x, double *y, int64_t count, double alpha, double beta);

#define KERNEL_UNARY(name, f32_expression, f64_expression, ...)                                            \
  CPU_VECTOR static void name##_f32(const float *in, float *out, int64_t count, float alpha, float beta) { \
    (void)alpha;                                                                                           \
    (void)beta;                                                                                            \
    CPU_INDEPENDENT                                                                                        \
    for (int64_t k = 0; k < count; k++) {                                                                  \
      float x = in[k];                                                                                     \
      out[k] = (f32_expression);                                                                           \
    }                                                                                                      \
  }                                                                                                        \
  static void name##_f64(const double *in, double *out, int64_t count, double alpha, double beta) {        \
    (void)alpha;                                                                                           \
    (void)beta;                                                                                            \
    for (int64_t k = 0; k < count; k++) {                                                                  \
      double x = in[k];                                                                                    \
      out[k] = (f64_expression);                                                                           \
    }                                                                                                      \
  }

#define INTEGER_ROW(name, T, U, EXPRESSION)                                                                \
  static void name(void *context, unsigned char *const *pointers, const int64_t *strides, int64_t count) { \
    typedef U W;                                                                                           \
    (void)sizeof(W);                                                                                       \
    (void)context;                                                                                         \
    (void)strides;                                                                                         \
    T *out = (T *)(void *)pointers[0];                                                                     \
    const T *in = (const T *)(const void *)pointers[1];                                                    \
    CPU_INDEPENDENT                                                                                        \
    for (int64_t k = 0; k < count; k++) {                                                                  \
      T x = in[k];                                                                                         \
      out[k] = (T)(EXPRESSION);                                                                            \
    }                                                                                                      \
  }

#define KERNEL_UNARY_INTEGER(name, on_signed, on_unsigned) \
  INTEGER_ROW(name##_i8, int8_t, uint32_t, on_signed)      \
  INTEGER_ROW(name##_i16, int16_t, uint32_t, on_signed)    \
  INTEGER_ROW(name##_i32, int32_t, uint32_t, on_signed)    \
  INTEGER_ROW(name##_i64, int64_t, uint64_t, on_signed)    \
  INTEGER_ROW(name##_u8, uint8_t, uint32_t, on_unsigned)   \
  INTEGER_ROW(name##_u16, uint16_t, uint32_t, on_unsigned) \
  INTEGER_ROW(name##_u32, uint32_t, uint32_t, on_unsigned) \
  INTEGER_ROW(name##_u64, uint64_t, uint64_t, on_unsigned)

#include "kernels/operators.inc"

typedef struct unary_entry {
  const char *op; /* as in the list: Gelu has a name for each form */
  unary_f32_t f32;
  unary_f64_t f64;
  int64_t cost; /* as for cpu_loop_run */
  const char *alpha_name;
  double alpha;
  const char *beta_name;
  double beta;
} unary_entry_t;

static const unary_entry_t entries[] = {
#define KERNEL_UNARY(name, f32_expression, f64_expression, derivative, ulps, cost, ...) \
  {#name, name##_f32, name##_f64, cost, __VA_ARGS__},
#include "kernels/operators.inc"
};

enum { DTYPE_COUNT = CLEAVE_DTYPE_BF16 + 1 };

static const struct {
  const char *op;
  cpu_row_fn_t rows[DTYPE_COUNT];
} integers[] = {
#define KERNEL_UNARY_INTEGER(name, on_signed, on_unsigned) \
  {#name,                                                  \
   {[CLEAVE_DTYPE_I8] = name##_i8,                         \
    [CLEAVE_DTYPE_I16] = name##_i16,                       \
    [CLEAVE_DTYPE_I32] = name##_i32,                       \
    [CLEAVE_DTYPE_I64] = name##_i64,                       \
    [CLEAVE_DTYPE_U8] = name##_u8,                         \
    [CLEAVE_DTYPE_U16] = name##_u16,                       \
    [CLEAVE_DTYPE_U32] = name##_u32,                       \
    [CLEAVE_DTYPE_U64] = name##_u64}},
#include "kernels/operators.inc"
};

typedef struct unary_state {
  const unary_entry_t *entry; /* NULL for integers */
  double alpha;
  double beta;
  cpu_row_fn_t integer;
} unary_state_t;

static cpu_row_fn_t find_integer(const char *op, cleave_dtype_t dtype) {
  for (size_t k = 0; k < sizeof integers / sizeof integers[0]; k++) {
    if (cleave_view_text_equal(integers[k].op, op) && (unsigned)dtype < DTYPE_COUNT) {
      return integers[k].rows[dtype];
    }
  }
  return NULL;
}

static cleave_status_t prepare_named(cpu_prepare_t *prepare, unary_state_t *state, const char *name,
                                     cleave_message_t *message) {
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  bool is_same = cpu_output_dtype(prepare, 0) == dtype;
  state->integer = is_same ? find_integer(name, dtype) : NULL;
  if (state->integer != NULL) {
    return CLEAVE_OK;
  }
  if (!cpu_dtype_is_float(dtype) || !is_same) {
    return cpu_fail(message, CLEAVE_ERROR_UNSUPPORTED, "from %s to %s is not supported",
                    cpu_dtype_name(dtype), cpu_dtype_name(cpu_output_dtype(prepare, 0)));
  }
  for (size_t k = 0; k < sizeof entries / sizeof entries[0]; k++) {
    if (cleave_view_text_equal(entries[k].op, name)) {
      state->entry = &entries[k];
      state->alpha = cleave_view_float(prepare->node, entries[k].alpha_name, entries[k].alpha);
      state->beta = cleave_view_float(prepare->node, entries[k].beta_name, entries[k].beta);
      return CLEAVE_OK;
    }
  }
  return cpu_fail(message, CLEAVE_ERROR_INTERNAL, "'%s' is not in the table", name);
}

static cleave_status_t prepare_unary(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  return prepare_named(prepare, state, prepare->node->op, message);
}

static cleave_status_t prepare_gelu(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  const char *mode = cleave_view_string(prepare->node, "approximate", "none");
  bool is_tanh = cleave_view_text_equal(mode, "tanh");
  if (!is_tanh && !cleave_view_text_equal(mode, "none")) {
    return cpu_fail(message, CLEAVE_ERROR_UNSUPPORTED, "approximate is '%s', expected none or tanh", mode);
  }
  return prepare_named(prepare, state, is_tanh ? "GeluTanh" : "GeluErf", message);
}

typedef struct unary_work {
  const unary_state_t *state;
  const cpu_tensor_t *from;
  cpu_tensor_t *to;
} unary_work_t;

static void run_short(const unary_work_t *work, int64_t begin, int64_t end) {
  const unary_state_t *state = work->state;
  const uint16_t *from = work->from->data;
  uint16_t *to = work->to->data;
  float block[CPU_BLOCK];
  for (int64_t k = begin; k < end; k += CPU_BLOCK) {
    int64_t count = end - k < CPU_BLOCK ? end - k : CPU_BLOCK;
    cpu_convert(work->from->dtype, from + k, CLEAVE_DTYPE_F32, block, count);
    state->entry->f32(block, block, count, (float)state->alpha, (float)state->beta);
    cpu_convert(CLEAVE_DTYPE_F32, block, work->to->dtype, to + k, count);
  }
}

static void run_range(void *context, int64_t begin, int64_t end) {
  const unary_work_t *work = context;
  const unary_state_t *state = work->state;
  if (work->from->dtype == CLEAVE_DTYPE_F32) {
    state->entry->f32((const float *)work->from->data + begin, (float *)work->to->data + begin, end - begin,
                      (float)state->alpha, (float)state->beta);
  } else if (work->from->dtype == CLEAVE_DTYPE_F64) {
    state->entry->f64((const double *)work->from->data + begin, (double *)work->to->data + begin, end - begin,
                      state->alpha, state->beta);
  } else {
    run_short(work, begin, end);
  }
}

static cleave_status_t run_unary(const cpu_call_t *call, cleave_message_t *message) {
  const unary_state_t *state = call->state;
  unary_work_t work = {.state = state, .from = call->inputs[0], .to = call->outputs[0]};
  cleave_status_t status = cpu_output_shape(call, 0, work.from->rank, work.from->dims, message);
  if (status != CLEAVE_OK) {
    return status;
  }
  if (state->integer == NULL) {
    cpu_parallel(call, work.from->count, CPU_WORK_GRAIN / state->entry->cost, run_range, &work);
    return CLEAVE_OK;
  }
  cpu_loop_t loop;
  cpu_loop_broadcast(&loop, call->outputs[0], call->inputs, 1);
  cpu_loop_run(call, &loop, state->integer, NULL, 1);
  return CLEAVE_OK;
}

#define ENTRY(name, function)           \
  {.op = name,                          \
   .state_size = sizeof(unary_state_t), \
   .prepare = function,                 \
   .run = run_unary,                    \
   .inplace = 1,                        \
   .required_inputs = 1},

const cpu_kernel_t cpu_kernels_unary[] = {
#define KERNEL_UNARY(name, ...) ENTRY(#name, prepare_unary)
#include "kernels/operators.inc"
    ENTRY("Gelu", prepare_gelu){0},
};
