// SPDX-License-Identifier: Apache-2.0
// TopK (opset 11) for every numeric type. A heap of the best k indices per row, worst first; equal values
// rank by index, so the order is total and the result stable. NaN counts as larger than any number.
#include <string.h>

#include "cpu/common/nn.h"

typedef struct sort_state {
  int64_t axis;
  bool largest;
} sort_state_t;

typedef struct sort_row {
  const void *x;   // first element of the row
  int64_t stride;  // elements from one to the next
  bool largest;
} sort_row_t;

// Whether element a ranks before element b.
typedef bool (*ranks_before_t)(const sort_row_t *row, int64_t a, int64_t b);

#define DEFINE_RANKS(suffix, type, is_nan)                                           \
  static bool ranks_before_##suffix(const sort_row_t *row, int64_t a, int64_t b) {   \
    type left = ((const type *)row->x)[a * row->stride];                             \
    type right = ((const type *)row->x)[b * row->stride];                            \
    bool less = left < right || (!(is_nan(left)) && is_nan(right));                  \
    bool greater = left > right || (is_nan(left) && !(is_nan(right)));               \
    return row->largest ? greater || (!less && a < b) : less || (!greater && a < b); \
  }
#define NEVER(value) false
#define FLOAT_NAN(value) ((value) != (value))

DEFINE_RANKS(f32, float, FLOAT_NAN)
DEFINE_RANKS(f64, double, FLOAT_NAN)
DEFINE_RANKS(i8, int8_t, NEVER)
DEFINE_RANKS(u8, uint8_t, NEVER)
DEFINE_RANKS(i16, int16_t, NEVER)
DEFINE_RANKS(u16, uint16_t, NEVER)
DEFINE_RANKS(i32, int32_t, NEVER)
DEFINE_RANKS(u32, uint32_t, NEVER)
DEFINE_RANKS(i64, int64_t, NEVER)
DEFINE_RANKS(u64, uint64_t, NEVER)

static ranks_before_t ranks_of(cleave_dtype_t dtype) {
  switch (dtype) {
    case CLEAVE_DTYPE_F32: return ranks_before_f32;
    case CLEAVE_DTYPE_F64: return ranks_before_f64;
    case CLEAVE_DTYPE_I8: return ranks_before_i8;
    case CLEAVE_DTYPE_BOOL:
    case CLEAVE_DTYPE_U8: return ranks_before_u8;
    case CLEAVE_DTYPE_I16: return ranks_before_i16;
    case CLEAVE_DTYPE_U16: return ranks_before_u16;
    case CLEAVE_DTYPE_I32: return ranks_before_i32;
    case CLEAVE_DTYPE_U32: return ranks_before_u32;
    case CLEAVE_DTYPE_I64: return ranks_before_i64;
    case CLEAVE_DTYPE_U64: return ranks_before_u64;
    default: return NULL;
  }
}

typedef struct sort {
  const cpu_tensor_t *x;
  cpu_tensor_t *values;   // or NULL
  cpu_tensor_t *indices;  // or NULL
  int64_t *heaps;         // [rows, k]
  int64_t length;
  int64_t inner;  // elements behind the axis
  int64_t k;
  bool largest;
  ranks_before_t ranks_before;
} sort_t;

// Restores the heap below `at`: its root is the one that ranks last.
static void sift_down(const sort_t *c, const sort_row_t *row, int64_t *heap, int64_t count, int64_t at) {
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) {
      return;
    }
    if (child + 1 < count && c->ranks_before(row, heap[child], heap[child + 1])) {
      child++;
    }
    if (!c->ranks_before(row, heap[at], heap[child])) {
      return;
    }
    int64_t moved = heap[at];
    heap[at] = heap[child];
    heap[child] = moved;
    at = child;
  }
}

static void select_best(const sort_t *c, const sort_row_t *row, int64_t *heap) {
  for (int64_t i = 0; i < c->k; i++) {
    heap[i] = i;
  }
  for (int64_t i = c->k / 2 - 1; i >= 0; i--) {
    sift_down(c, row, heap, c->k, i);
  }
  for (int64_t i = c->k; i < c->length; i++) {
    if (c->ranks_before(row, i, heap[0])) {
      heap[0] = i;
      sift_down(c, row, heap, c->k, 0);
    }
  }
  for (int64_t count = c->k - 1; count > 0; count--) {
    int64_t last = heap[0];
    heap[0] = heap[count];
    heap[count] = last;
    sift_down(c, row, heap, count, 0);
  }
}

static void sort_rows(void *context, int64_t begin, int64_t end) {
  const sort_t *c = context;
  size_t element = cleave_dtype_size(c->x->dtype);
  for (int64_t item = begin; item < end; item++) {
    int64_t from = item / c->inner * c->length * c->inner + item % c->inner;
    int64_t to = item / c->inner * c->k * c->inner + item % c->inner;
    const unsigned char *x = (const unsigned char *)c->x->data + (size_t)from * element;
    sort_row_t row = {x, c->inner, c->largest};
    int64_t *heap = c->heaps + item * c->k;
    select_best(c, &row, heap);
    for (int64_t i = 0; i < c->k; i++) {
      if (c->indices != NULL) {
        ((int64_t *)c->indices->data)[to + i * c->inner] = heap[i];
      }
      if (c->values != NULL) {
        memcpy((unsigned char *)c->values->data + (size_t)(to + i * c->inner) * element,
               x + (size_t)(heap[i] * c->inner) * element, element);
      }
    }
  }
}

static cleave_status_t sort_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  sort_state_t *sort = state;
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  if (!cpu_dtype_is_short_float(dtype) && ranks_of(dtype) == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "input of dtype %s is not supported",
                       cpu_dtype_name(dtype));
  }
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  CPU_TRY(cpu_nn_require_output(prepare, 1, CPU_NN_ONE(CLEAVE_DTYPE_I64), message));
  sort->axis = cleave_view_int(prepare->node, "axis", -1);
  sort->largest = cleave_view_int(prepare->node, "largest", 1) != 0;
  return CLEAVE_OK;
}

static cleave_status_t sort_plan(const cpu_call_t *call, sort_t *out_sort, cleave_message_t *message) {
  const sort_state_t *state = call->state;
  const cpu_tensor_t *x = call->inputs[0];
  sort_t sort = {
      .x = x, .values = cpu_output(call, 0), .indices = cpu_output(call, 1), .largest = state->largest};
  const cpu_tensor_t *y = sort.values != NULL ? sort.values : sort.indices;
  int32_t axis = 0;
  CPU_TRY(cpu_find_axis(state->axis, x->rank, &axis, message));
  if (y == NULL || y->rank != x->rank) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "output does not have the rank of the input");
  }
  for (int32_t d = 0; d < x->rank; d++) {
    if (d != axis && y->dims[d] != x->dims[d]) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "output and input differ on axis %d", d);
    }
  }
  sort.length = x->dims[axis];
  sort.k = y->dims[axis];
  sort.inner = cpu_nn_span(x, axis + 1, x->rank);
  if (sort.k > sort.length || (sort.indices != NULL && sort.indices->count != y->count)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%lld element%s wanted of %lld", (long long)sort.k,
                       KERNEL_PLURAL(sort.k), (long long)sort.length);
  }
  *out_sort = sort;
  return CLEAVE_OK;
}

static size_t direct_scratch(const cpu_call_t *call) {
  sort_t sort = {0};
  cpu_carver_t carver = {NULL, 0};
  if (sort_plan(call, &sort, NULL) == CLEAVE_OK) {
    (void)cpu_nn_carve(&carver, sort.values != NULL ? sort.values->count : sort.indices->count,
                       sizeof(int64_t));
  }
  return carver.used;
}

static cleave_status_t direct_run(const cpu_call_t *call, cleave_message_t *message) {
  sort_t sort;
  CPU_TRY(sort_plan(call, &sort, message));
  int64_t count = sort.values != NULL ? sort.values->count : sort.indices->count;
  if (count == 0) {
    return CLEAVE_OK;
  }
  sort.heaps = call->scratch;
  sort.ranks_before = ranks_of(sort.x->dtype);
  cpu_parallel(call, count / sort.k, cpu_nn_grain(sort.length * 4), sort_rows, &sort);
  return CLEAVE_OK;
}

static size_t sort_scratch(const cpu_call_t *call) {
  return cpu_nn_scratch_float(call, 0, direct_scratch, direct_scratch);
}

static cleave_status_t sort_run(const cpu_call_t *call, cleave_message_t *message) {
  CPU_TRY(cpu_nn_check_outputs(call, message));
  if (cpu_nn_is_float(call->inputs[0]->dtype)) {
    return cpu_nn_run_float(call, message, 0, direct_run, direct_run);
  }
  return direct_run(call, message);
}

const cpu_kernel_t cpu_kernels_sort[] = {
    CPU_KERNEL("TopK", 2, .state_size = sizeof(sort_state_t), .prepare = sort_prepare,
               .scratch = sort_scratch, .run = sort_run),
    {.op = NULL},
};
