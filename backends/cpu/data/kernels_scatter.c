// SPDX-License-Identifier: Apache-2.0
// ScatterElements, ScatterND and TensorScatter: the data is copied, unless the output lies over it; then
// updates go to their places in order, replacing what is there or combining with it. One thread: equal
// indices must meet in order.
#include <string.h>

#include "cpu/common/index.h"
#include "cpu/common/loop.h"
#include "cpu/common/nn.h"
#include "kernels/convert.h"

/* Combines `count` elements of `from` into `to`. */
typedef void (*combine_fn_t)(void *to, const void *from, int64_t count);

#define COMBINE(name, T, EXPRESSION)                            \
  static void name(void *to, const void *from, int64_t count) { \
    T *out = to;                                                \
    const T *in = from;                                         \
    for (int64_t k = 0; k < count; k++) {                       \
      T x = out[k];                                             \
      T y = in[k];                                              \
      out[k] = (T)(EXPRESSION);                                 \
    }                                                           \
  }

#define COMBINE_INTEGER(t, T, W)     \
  COMBINE(add_##t, T, (W)x + (W)y)   \
  COMBINE(mul_##t, T, (W)x *(W)y)    \
  COMBINE(max_##t, T, x > y ? x : y) \
  COMBINE(min_##t, T, x < y ? x : y)

#define COMBINE_FLOAT(t, T)                    \
  COMBINE(add_##t, T, x + y)                   \
  COMBINE(mul_##t, T, x *y)                    \
  COMBINE(max_##t, T, x > y || x != x ? x : y) \
  COMBINE(min_##t, T, x < y || x != x ? x : y)

#define HALF_SUM(x, y) cleave_float_to_half(cleave_half_to_float(x) + cleave_half_to_float(y))
#define HALF_PRODUCT(x, y) cleave_float_to_half(cleave_half_to_float(x) * cleave_half_to_float(y))
#define BFLOAT_SUM(x, y) cleave_float_to_bfloat(cleave_bfloat_to_float(x) + cleave_bfloat_to_float(y))
#define BFLOAT_PRODUCT(x, y) cleave_float_to_bfloat(cleave_bfloat_to_float(x) * cleave_bfloat_to_float(y))

/* NaN stays. */
#define IS_LARGER(widen, x, y) (widen(x) > widen(y) || widen(x) != widen(x))
#define IS_SMALLER(widen, x, y) (widen(x) < widen(y) || widen(x) != widen(x))

COMBINE_FLOAT(f32, float)
COMBINE_FLOAT(f64, double)
COMBINE_INTEGER(i8, int8_t, uint32_t)
COMBINE_INTEGER(i16, int16_t, uint32_t)
COMBINE_INTEGER(i32, int32_t, uint32_t)
COMBINE_INTEGER(i64, int64_t, uint64_t)
COMBINE_INTEGER(u8, uint8_t, uint32_t)
COMBINE_INTEGER(u16, uint16_t, uint32_t)
COMBINE_INTEGER(u32, uint32_t, uint32_t)
COMBINE_INTEGER(u64, uint64_t, uint64_t)
COMBINE(add_bool, uint8_t, (x | y) != 0)
COMBINE(mul_bool, uint8_t, (x != 0) & (y != 0))
COMBINE(max_bool, uint8_t, (x | y) != 0)
COMBINE(min_bool, uint8_t, (x != 0) & (y != 0))
COMBINE(add_f16, uint16_t, HALF_SUM(x, y))
COMBINE(mul_f16, uint16_t, HALF_PRODUCT(x, y))
COMBINE(max_f16, uint16_t, IS_LARGER(cleave_half_to_float, x, y) ? x : y)
COMBINE(min_f16, uint16_t, IS_SMALLER(cleave_half_to_float, x, y) ? x : y)
COMBINE(add_bf16, uint16_t, BFLOAT_SUM(x, y))
COMBINE(mul_bf16, uint16_t, BFLOAT_PRODUCT(x, y))
COMBINE(max_bf16, uint16_t, IS_LARGER(cleave_bfloat_to_float, x, y) ? x : y)
COMBINE(min_bf16, uint16_t, IS_SMALLER(cleave_bfloat_to_float, x, y) ? x : y)

#define COMBINE_ROW(dtype, t) [dtype] = {add_##t, mul_##t, max_##t, min_##t}

static const combine_fn_t combiners[][4] = {
    COMBINE_ROW(CLEAVE_DTYPE_F32, f32),   COMBINE_ROW(CLEAVE_DTYPE_U8, u8),
    COMBINE_ROW(CLEAVE_DTYPE_I8, i8),     COMBINE_ROW(CLEAVE_DTYPE_U16, u16),
    COMBINE_ROW(CLEAVE_DTYPE_I16, i16),   COMBINE_ROW(CLEAVE_DTYPE_I32, i32),
    COMBINE_ROW(CLEAVE_DTYPE_I64, i64),   COMBINE_ROW(CLEAVE_DTYPE_BOOL, bool),
    COMBINE_ROW(CLEAVE_DTYPE_F16, f16),   COMBINE_ROW(CLEAVE_DTYPE_F64, f64),
    COMBINE_ROW(CLEAVE_DTYPE_U32, u32),   COMBINE_ROW(CLEAVE_DTYPE_U64, u64),
    COMBINE_ROW(CLEAVE_DTYPE_BF16, bf16),
};

typedef struct scatter_state {
  int64_t axis;
  combine_fn_t combine; /* NULL: replace */
} scatter_state_t;

static cleave_status_t prepare_scatter(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  static const char *const names[] = {"add", "mul", "max", "min"};
  scatter_state_t *self = state;
  self->axis = cleave_view_int(prepare->node, "axis", 0);
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  if (cpu_input_dtype(prepare, 2) != dtype || cpu_output_dtype(prepare, 0) != dtype ||
      !cpu_dtype_is_integer(cpu_input_dtype(prepare, 1))) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%s with updates of %s by %s is not supported",
                       cpu_dtype_name(dtype), cpu_dtype_name(cpu_input_dtype(prepare, 2)),
                       cpu_dtype_name(cpu_input_dtype(prepare, 1)));
  }
  const char *reduction = cleave_view_string(prepare->node, "reduction", "none");
  if (strcmp(reduction, "none") == 0) {
    return CLEAVE_OK;
  }
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
    if (strcmp(reduction, names[k]) == 0 && cpu_dtype_is_plain(dtype)) {
      self->combine = combiners[dtype][k];
    }
  }
  return self->combine != NULL
             ? CLEAVE_OK
             : kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "reduction '%s' of %s is not supported",
                           reduction, cpu_dtype_name(dtype));
}

static void put(const scatter_state_t *state, void *to, const void *from, int64_t count, size_t size) {
  if (state->combine != NULL) {
    state->combine(to, from, count);
  } else {
    memcpy(to, from, (size_t)count * size);
  }
}

static cleave_status_t run_scatter_elements(const cpu_call_t *call, cleave_message_t *message) {
  const scatter_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *indices = call->inputs[1];
  const cpu_tensor_t *updates = call->inputs[2];
  int32_t axis = 0;
  if (!cpu_axis(state->axis, data->rank, &axis) || indices->rank != data->rank ||
      !cpu_same_shape(indices, updates)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "axis %lld, indices and updates do not fit rank %d",
                       (long long)state->axis, (int)data->rank);
  }
  for (int32_t d = 0; d < data->rank; d++) {
    if (d != axis && indices->dims[d] > data->dims[d]) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "indices have %lld at dim %d, at most %lld",
                         (long long)indices->dims[d], (int)d, (long long)data->dims[d]);
    }
  }
  cleave_status_t status = cpu_output_shape(call, 0, data->rank, data->dims, message);
  if (status == CLEAVE_OK) {
    status = cpu_check_indices(indices, data->dims[axis], message);
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  size_t size = cleave_dtype_size(data->dtype);
  int64_t strides[CLEAVE_MAX_RANK] = {0};
  int64_t index[CLEAVE_MAX_RANK] = {0};
  cpu_copy(call, call->outputs[0]->data, data->data, data->count * (int64_t)size);
  cpu_dense_strides(data->rank, data->dims, size, strides);
  for (int64_t k = 0; k < indices->count; k++) {
    int64_t offset = 0;
    for (int32_t d = 0; d < data->rank; d++) {
      int64_t place = d == axis ? cpu_wrap_index(cpu_read_index(indices, k), data->dims[d]) : index[d];
      offset += place * strides[d];
    }
    put(state, (unsigned char *)call->outputs[0]->data + offset,
        (const unsigned char *)updates->data + (size_t)k * size, 1, size);
    cpu_next_index(indices->rank, indices->dims, index);
  }
  return CLEAVE_OK;
}

static cleave_status_t run_scatter_nd(const cpu_call_t *call, cleave_message_t *message) {
  const scatter_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *indices = call->inputs[1];
  const cpu_tensor_t *updates = call->inputs[2];
  int64_t depth = indices->rank < 1 ? 0 : indices->dims[indices->rank - 1];
  if (depth < 1 || depth > data->rank) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "tuples of %lld indices do not fit rank %d",
                       (long long)depth, (int)data->rank);
  }
  int64_t tuples = indices->count / depth;
  int64_t block = cpu_count(data->rank - (int32_t)depth, data->dims + depth);
  if (updates->count != tuples * block) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "updates have %lld element%s, expected %lld",
                       (long long)updates->count, KERNEL_PLURAL(updates->count), (long long)(tuples * block));
  }
  cleave_status_t status = cpu_output_shape(call, 0, data->rank, data->dims, message);
  if (status == CLEAVE_OK) {
    status = cpu_check_tuples(indices, depth, data->dims, message);
  }
  if (status != CLEAVE_OK || data->count == 0) {
    return status;
  }
  size_t size = cleave_dtype_size(data->dtype);
  int64_t strides[CLEAVE_MAX_RANK] = {0};
  cpu_copy(call, call->outputs[0]->data, data->data, data->count * (int64_t)size);
  cpu_dense_strides(data->rank, data->dims, size, strides);
  for (int64_t k = 0; k < tuples; k++) {
    int64_t offset = 0;
    for (int64_t d = 0; d < depth; d++) {
      offset += cpu_wrap_index(cpu_read_index(indices, k * depth + d), data->dims[d]) * strides[d];
    }
    put(state, (unsigned char *)call->outputs[0]->data + offset,
        (const unsigned char *)updates->data + (size_t)(k * block) * size, block, size);
  }
  return CLEAVE_OK;
}

// ---- rows of a cache ----

typedef struct rows_state {
  int64_t axis;
  bool is_circular;
} rows_state_t;

static cleave_status_t prepare_rows(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  rows_state_t *self = state;
  const char *mode = cleave_view_string(prepare->node, "mode", "linear");
  cleave_dtype_t indices = cpu_input_dtype(prepare, 2);
  self->axis = cleave_view_int(prepare->node, "axis", -2);
  self->is_circular = strcmp(mode, "circular") == 0;
  if (!self->is_circular && strcmp(mode, "linear") != 0) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "mode '%s' is unknown, expected linear or circular",
                       mode);
  }
  if (cpu_input_dtype(prepare, 0) != cpu_input_dtype(prepare, 1) ||
      cpu_output_dtype(prepare, 0) != cpu_input_dtype(prepare, 0) ||
      cpu_input_dtype(prepare, 0) == CLEAVE_DTYPE_STRING ||
      (indices != CLEAVE_DTYPE_UNKNOWN && !cpu_dtype_is_integer(indices))) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "a cache of %s with updates of %s is not supported",
                       cpu_dtype_name(cpu_input_dtype(prepare, 0)),
                       cpu_dtype_name(cpu_input_dtype(prepare, 1)));
  }
  return CLEAVE_OK;
}

/* All that may be wrong, before anything is written: the output may be the cache itself. */
static cleave_status_t check_rows(const cpu_call_t *call, int32_t *axis, cleave_message_t *message) {
  const rows_state_t *state = call->state;
  const cpu_tensor_t *cache = call->inputs[0];
  const cpu_tensor_t *update = call->inputs[1];
  const cpu_tensor_t *indices = cpu_input(call, 2);
  bool fits = cpu_axis(state->axis, cache->rank, axis) && *axis > 0 && update->rank == cache->rank;
  for (int32_t d = 0; fits && d < cache->rank; d++) {
    fits = d == *axis ? update->dims[d] <= cache->dims[d] : update->dims[d] == cache->dims[d];
  }
  if (!fits || (indices != NULL && (indices->rank != 1 || indices->dims[0] != cache->dims[0]))) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                       "axis %lld, the update and write_indices do not fit the cache",
                       (long long)state->axis);
  }
  int64_t last = cache->dims[*axis] - (state->is_circular ? 1 : update->dims[*axis]);
  for (int64_t b = 0; indices != NULL && b < indices->count; b++) {
    int64_t index = cpu_read_index(indices, b);
    if (index < 0 || (index > last && update->count > 0)) {
      return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT,
                         "write_indices has %lld, expected 0 to %lld: the cache has room for %lld",
                         (long long)index, (long long)last, (long long)cache->dims[*axis]);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t run_rows(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *cache = call->inputs[0];
  const cpu_tensor_t *update = call->inputs[1];
  const cpu_tensor_t *indices = cpu_input(call, 2);
  int32_t axis = 0;
  CPU_TRY(check_rows(call, &axis, message));
  CPU_TRY(cpu_output_shape(call, 0, cache->rank, cache->dims, message));
  size_t size = cleave_dtype_size(cache->dtype);
  size_t row = (size_t)cpu_count(cache->rank - axis - 1, cache->dims + axis + 1) * size;
  int64_t matrices = cpu_count(axis - 1, cache->dims + 1); /* of a batch */
  int64_t room = cache->dims[axis];
  int64_t rows = update->dims[axis];
  cpu_copy(call, call->outputs[0]->data, cache->data, cache->count * (int64_t)size);
  const unsigned char *from = update->data;
  unsigned char *to = call->outputs[0]->data;
  for (int64_t m = 0; m < cache->dims[0] * matrices && row > 0 && rows > 0; m++, to += (size_t)room * row) {
    int64_t first = indices != NULL ? cpu_read_index(indices, m / matrices) : 0;
    int64_t before_end = room - first < rows ? room - first : rows;
    memcpy(to + (size_t)first * row, from, (size_t)before_end * row);
    memcpy(to, from + (size_t)before_end * row, (size_t)(rows - before_end) * row);
    from += (size_t)rows * row;
  }
  return CLEAVE_OK;
}

const cpu_kernel_t cpu_kernels_scatter[] = {
    CPU_KERNEL("ScatterElements", 3, .state_size = sizeof(scatter_state_t), .prepare = prepare_scatter,
               .run = run_scatter_elements, .inplace = 1),
    CPU_KERNEL("ScatterND", 3, .state_size = sizeof(scatter_state_t), .prepare = prepare_scatter,
               .run = run_scatter_nd, .inplace = 1),
    CPU_KERNEL("TensorScatter", 2, .state_size = sizeof(rows_state_t), .prepare = prepare_rows,
               .run = run_rows, .inplace = 1),
    {0},
};
