// SPDX-License-Identifier: Apache-2.0
// Where and Clip. Where only moves elements, so that it knows sizes, not dtypes.
#include "cpu/common/binary.h"

/* Dense condition against choices that are dense or one element. */
#define WHERE_LOOP(T, X_STEP, Y_STEP)                 \
  CPU_INDEPENDENT                                     \
  for (int64_t k = 0; k < count; k++) {               \
    T chosen_x = x[k * (X_STEP)];                     \
    T chosen_y = y[k * (Y_STEP)];                     \
    out[k] = condition[k] != 0 ? chosen_x : chosen_y; \
  }

#define WHERE_ROW(name, T)                                                                                 \
  static void name(void *context, unsigned char *const *pointers, const int64_t *strides, int64_t count) { \
    (void)context;                                                                                         \
    T *out = (T *)(void *)pointers[0];                                                                     \
    const uint8_t *condition = pointers[1];                                                                \
    const T *x = (const T *)(const void *)pointers[2];                                                     \
    const T *y = (const T *)(const void *)pointers[3];                                                     \
    if (strides[1] == 0) {                                                                                 \
      const T *chosen = *condition != 0 ? x : y;                                                           \
      int64_t step = strides[*condition != 0 ? 2 : 3] != 0;                                                \
      CPU_INDEPENDENT                                                                                      \
      for (int64_t k = 0; k < count; k++) {                                                                \
        out[k] = chosen[k * step];                                                                         \
      }                                                                                                    \
    } else if (strides[2] != 0 && strides[3] != 0) {                                                       \
      WHERE_LOOP(T, 1, 1)                                                                                  \
    } else if (strides[2] != 0) {                                                                          \
      WHERE_LOOP(T, 1, 0)                                                                                  \
    } else if (strides[3] != 0) {                                                                          \
      WHERE_LOOP(T, 0, 1)                                                                                  \
    } else {                                                                                               \
      WHERE_LOOP(T, 0, 0)                                                                                  \
    }                                                                                                      \
  }

WHERE_ROW(where_1, uint8_t)
WHERE_ROW(where_2, uint16_t)
WHERE_ROW(where_4, uint32_t)
WHERE_ROW(where_8, uint64_t)

static cleave_status_t prepare_where(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  (void)state;
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 1);
  if (cpu_input_dtype(prepare, 0) != CLEAVE_DTYPE_BOOL || cpu_input_dtype(prepare, 2) != dtype ||
      cpu_output_dtype(prepare, 0) != dtype || cleave_dtype_size(dtype) == 0) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                       "%s, %s and %s do not fit: expected bool and two of one dtype",
                       cpu_dtype_name(cpu_input_dtype(prepare, 0)), cpu_dtype_name(dtype),
                       cpu_dtype_name(cpu_input_dtype(prepare, 2)));
  }
  return CLEAVE_OK;
}

static cleave_status_t run_where(const cpu_call_t *call, cleave_message_t *message) {
  int32_t rank = 0;
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  cleave_status_t status = cpu_broadcast_shape(call->inputs, 3, &rank, dims, message);
  if (status == CLEAVE_OK) {
    status = cpu_output_shape(call, 0, rank, dims, message);
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  size_t size = cleave_dtype_size(call->outputs[0]->dtype);
  cpu_loop_t loop;
  cpu_loop_broadcast(&loop, call->outputs[0], call->inputs, 3);
  cpu_loop_run(call, &loop,
               size == 1   ? where_1
               : size == 2 ? where_2
               : size == 4 ? where_4
                           : where_8,
               NULL, 2);
  return CLEAVE_OK;
}

typedef struct clip_range {
  bool has_low;
  bool has_high;
  union {
    float f32;
    double f64;
    int64_t i64;
    uint64_t u64;
  } low, high;
} clip_range_t;

/* With low above high the result is high; NaN stays. */
#define CLIP_ROW(attribute, name, T, field)                                                         \
  attribute static void name(void *context, unsigned char *const *pointers, const int64_t *strides, \
                             int64_t count) {                                                       \
    const clip_range_t *range = context;                                                            \
    T low = (T)range->low.field;                                                                    \
    T high = (T)range->high.field;                                                                  \
    T *out = (T *)(void *)pointers[0];                                                              \
    const T *in = (const T *)(const void *)pointers[1];                                             \
    (void)strides;                                                                                  \
    if (!range->has_low) {                                                                          \
      CPU_INDEPENDENT                                                                               \
      for (int64_t k = 0; k < count; k++) {                                                         \
        out[k] = in[k] > high ? high : in[k];                                                       \
      }                                                                                             \
    } else if (!range->has_high) {                                                                  \
      CPU_INDEPENDENT                                                                               \
      for (int64_t k = 0; k < count; k++) {                                                         \
        out[k] = in[k] < low ? low : in[k];                                                         \
      }                                                                                             \
    } else {                                                                                        \
      CPU_INDEPENDENT                                                                               \
      for (int64_t k = 0; k < count; k++) {                                                         \
        T x = in[k] < low ? low : in[k];                                                            \
        out[k] = x > high ? high : x;                                                               \
      }                                                                                             \
    }                                                                                               \
  }

CLIP_ROW(CPU_VECTOR, clip_f32, float, f32)
CLIP_ROW(, clip_f64, double, f64)
CLIP_ROW(, clip_i8, int8_t, i64)
CLIP_ROW(, clip_i16, int16_t, i64)
CLIP_ROW(, clip_i32, int32_t, i64)
CLIP_ROW(, clip_i64, int64_t, i64)
CLIP_ROW(, clip_u8, uint8_t, u64)
CLIP_ROW(, clip_u16, uint16_t, u64)
CLIP_ROW(, clip_u32, uint32_t, u64)
CLIP_ROW(, clip_u64, uint64_t, u64)

static const cpu_row_fn_t clip_rows[CPU_DTYPE_COUNT] = {CPU_NUMBER_ROWS(clip)};

/* Float16 and bfloat16, whose dtype comes after the range. */
typedef struct clip_short {
  clip_range_t range; /* first: the float row reads it as its context */
  cleave_dtype_t dtype;
} clip_short_t;

static void clip_short(void *context, unsigned char *const *pointers, const int64_t *strides, int64_t count) {
  const clip_short_t *clip = context;
  float block[CPU_BLOCK];
  unsigned char *blocks[2] = {(unsigned char *)block, (unsigned char *)block};
  for (int64_t k = 0; k < count; k += CPU_BLOCK) {
    int64_t n = count - k < CPU_BLOCK ? count - k : CPU_BLOCK;
    cpu_convert(clip->dtype, pointers[1] + 2 * k, CLEAVE_DTYPE_F32, block, n);
    clip_f32(context, blocks, strides, n);
    cpu_convert(CLEAVE_DTYPE_F32, block, clip->dtype, pointers[0] + 2 * k, n);
  }
}

static cleave_status_t prepare_clip(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  (void)state;
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  bool is_number = cpu_dtype_is_float(dtype) || cpu_dtype_is_integer(dtype);
  for (uint32_t k = 1; k < 3; k++) {
    cleave_dtype_t bound = cpu_input_dtype(prepare, k);
    is_number = is_number && (bound == dtype || bound == CLEAVE_DTYPE_UNKNOWN);
  }
  if (!is_number || cpu_output_dtype(prepare, 0) != dtype) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%s with bounds %s and %s is not supported",
                       cpu_dtype_name(dtype), cpu_dtype_name(cpu_input_dtype(prepare, 1)),
                       cpu_dtype_name(cpu_input_dtype(prepare, 2)));
  }
  return CLEAVE_OK;
}

static cleave_status_t run_clip(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *data = call->inputs[0];
  clip_short_t clip = {.dtype = data->dtype};
  cleave_dtype_t compute = data->dtype == CLEAVE_DTYPE_F64   ? CLEAVE_DTYPE_F64
                           : cpu_dtype_is_float(data->dtype) ? CLEAVE_DTYPE_F32
                           : data->dtype == CLEAVE_DTYPE_U64 ? CLEAVE_DTYPE_U64
                                                             : CLEAVE_DTYPE_I64;
  cleave_status_t status = cpu_output_shape(call, 0, data->rank, data->dims, message);
  for (uint32_t k = 1; k < 3 && status == CLEAVE_OK; k++) {
    const cpu_tensor_t *bound = cpu_input(call, k);
    if (bound == NULL) {
      continue;
    }
    if (bound->count != 1) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "input %u has %lld element%s, expected 1", (unsigned)k,
                         (long long)bound->count, KERNEL_PLURAL(bound->count));
    }
    cpu_convert(bound->dtype, bound->data, compute, k == 1 ? &clip.range.low : &clip.range.high, 1);
    clip.range.has_low = clip.range.has_low || k == 1;
    clip.range.has_high = clip.range.has_high || k == 2;
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  if (!clip.range.has_low && !clip.range.has_high) {
    cpu_copy(call, call->outputs[0]->data, data->data, data->count * (int64_t)cleave_dtype_size(data->dtype));
    return CLEAVE_OK;
  }
  cpu_loop_t loop;
  cpu_loop_broadcast(&loop, call->outputs[0], call->inputs, 1);
  cpu_loop_run(call, &loop, cpu_dtype_is_short_float(data->dtype) ? clip_short : clip_rows[data->dtype],
               &clip, 2);
  return CLEAVE_OK;
}

const cpu_kernel_t cpu_kernels_select[] = {
    CPU_KERNEL("Where", 3, .prepare = prepare_where, .run = run_where, .inplace = 7),
    CPU_KERNEL("Clip", 1, .prepare = prepare_clip, .run = run_clip, .inplace = 1),
    {0},
};
