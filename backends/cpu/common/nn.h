// SPDX-License-Identifier: Apache-2.0
/*
 * The neural-network kernels (convolution, pooling, normalisation, recurrence, ...) share this: checks of
 * dtypes and ranks, float16 and bfloat16 through float32 copies, and the layout of scratch memory.
 *
 * Numeric code is written once in a `<family>.inc` template with `REAL` the element type, and included for
 * float and double.
 */
#ifndef CLEAVE_CPU_NN_H
#define CLEAVE_CPU_NN_H

#include "cpu/common/kernel.h"
#include "kernels/convert.h"

#define CPU_CONCAT_(a, b) a##_##b
#define CPU_CONCAT(a, b) CPU_CONCAT_(a, b)

/* Attributes that count elements (strides, pads, ...) stay below this: sums of products of two fit int64. */
#define CPU_NN_MAX_EXTENT ((int64_t)1 << 30)

typedef cleave_status_t (*cpu_run_fn_t)(const cpu_call_t *call, cleave_message_t *message);
typedef size_t (*cpu_scratch_fn_t)(const cpu_call_t *call);

static inline bool cpu_nn_is_float(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F32 || dtype == CLEAVE_DTYPE_F64 || cpu_dtype_is_short_float(dtype);
}

/* Refuses a node whose input `index` is left out or not of a float type (f32, f64, f16, bf16). */
CLEAVE_MUST_USE cleave_status_t cpu_nn_require_float(const cpu_prepare_t *prepare, uint32_t index,
                                                     cleave_message_t *message);

/* Refuses it in the same way for a set of dtypes, `1u << dtype` each. */
CLEAVE_MUST_USE cleave_status_t cpu_nn_require_dtype(const cpu_prepare_t *prepare, uint32_t index,
                                                     uint32_t dtypes, cleave_message_t *message);

/* Refuses a node in which one of the inputs [first, last] is there and has another dtype than input 0. */
CLEAVE_MUST_USE cleave_status_t cpu_nn_require_same(const cpu_prepare_t *prepare, uint32_t first,
                                                    uint32_t last, cleave_message_t *message);

/* Refuses a node whose output `index` is wanted and not of one of these dtypes. */
CLEAVE_MUST_USE cleave_status_t cpu_nn_require_output(const cpu_prepare_t *prepare, uint32_t index,
                                                      uint32_t dtypes, cleave_message_t *message);

/* Refuses a node whose outputs [0, last] are wanted and of another dtype than input 0. */
CLEAVE_MUST_USE cleave_status_t cpu_nn_require_same_outputs(const cpu_prepare_t *prepare, uint32_t last,
                                                            cleave_message_t *message);

#define CPU_NN_FLOATS \
  (1u << CLEAVE_DTYPE_F32 | 1u << CLEAVE_DTYPE_F64 | 1u << CLEAVE_DTYPE_F16 | 1u << CLEAVE_DTYPE_BF16)
#define CPU_NN_ONE(dtype) (1u << (uint32_t)(dtype))
#define CPU_NN_BYTES (1u << CLEAVE_DTYPE_U8 | 1u << CLEAVE_DTYPE_I8)
#define CPU_NN_WIDE_INTEGERS \
  (1u << CLEAVE_DTYPE_I32 | 1u << CLEAVE_DTYPE_I64 | 1u << CLEAVE_DTYPE_U32 | 1u << CLEAVE_DTYPE_U64)

/* Fails unless the tensor is there and has this many elements. */
CLEAVE_MUST_USE cleave_status_t cpu_nn_check_count(const char *name, const cpu_tensor_t *tensor,
                                                   int64_t count, cleave_message_t *message);

/* Fails unless both have the same dims. */
CLEAVE_MUST_USE cleave_status_t cpu_nn_check_same_dims(const cpu_tensor_t *a, const cpu_tensor_t *b,
                                                       cleave_message_t *message);

/* Product of dims [first, last) of a tensor. */
int64_t cpu_nn_span(const cpu_tensor_t *tensor, int32_t first, int32_t last);

/* Offset in `small`, which broadcasts to `large` (right-aligned, dims of 1 stretch), of the element at
 * `index` of `large`. */
int64_t cpu_nn_broadcast_offset(const cpu_tensor_t *small, const cpu_tensor_t *large, int64_t index);

/* Whether `small` broadcasts to `large` without stretching `large`. */
bool cpu_nn_broadcasts(const cpu_tensor_t *small, const cpu_tensor_t *large);

/* Fails if an output has no memory, as its shape was not known. */
CLEAVE_MUST_USE cleave_status_t cpu_nn_check_outputs(const cpu_call_t *call, cleave_message_t *message);

/* Runs `f32` or `f64` by the dtype of input `input`; float16 and bfloat16 go through float32 copies of every
 * tensor of these types, kept in the scratch memory that cpu_nn_scratch_float() asked for. */
CLEAVE_MUST_USE cleave_status_t cpu_nn_run_float(const cpu_call_t *call, cleave_message_t *message,
                                                 uint32_t input, cpu_run_fn_t f32, cpu_run_fn_t f64);

/* Kernels for the dtypes of input 0, those for integers among them; signed ones run as unsigned ones. */
typedef struct cpu_nn_runs {
  cpu_run_fn_t f32;
  cpu_run_fn_t f64;
  cpu_run_fn_t u32;
  cpu_run_fn_t u64;
} cpu_nn_runs_t;

CLEAVE_MUST_USE cleave_status_t cpu_nn_run_number(const cpu_call_t *call, const cpu_nn_runs_t *runs,
                                                  cleave_message_t *message);

/* The scratch function that goes with it; `f32` and `f64` may be NULL: they need none. */
size_t cpu_nn_scratch_float(const cpu_call_t *call, uint32_t input, cpu_scratch_fn_t f32,
                            cpu_scratch_fn_t f64);

/* The scratch function of kernels that need no memory but that of the copies. */
size_t cpu_nn_scratch_halves(const cpu_call_t *call);

/* Lays out scratch memory. With base NULL it only measures, and every piece is NULL: the same layout
 * function serves `scratch` and `run`. `used` saturates at SIZE_MAX. */
typedef struct cpu_carver {
  unsigned char *base;
  size_t used;
} cpu_carver_t;

void *cpu_nn_carve(cpu_carver_t *carver, int64_t count, size_t element_size);

/* a * b for counts >= 0, saturating at INT64_MAX. */
int64_t cpu_nn_multiply(int64_t a, int64_t b);

static inline int64_t cpu_nn_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static inline int64_t cpu_nn_max(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* Quotient of b > 0 rounded towards minus infinity. */
static inline int64_t cpu_nn_floor_div(int64_t a, int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

/* Elements of work below which a parallel loop is not worth its start, as grain for items of `cost`. */
static inline int64_t cpu_nn_grain(int64_t cost) {
  return cost >= 16384 ? 1 : 16384 / (cost > 0 ? cost : 1);
}

#endif /* CLEAVE_CPU_NN_H */
