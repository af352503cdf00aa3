// SPDX-License-Identifier: Apache-2.0
// Reductions over any set of axes. Floats accumulate in double, integers in wrapping 64 bits. Dims are merged
// into alternating kept and reduced groups; a thread owns whole outputs. Accumulators are a block of lanes:
// neighbouring outputs if the last group is kept, parts of one output if it is reduced.

#include "cpu/common/loop.h"
#include "kernels/vector_math.h"

typedef enum reduction {
  REDUCE_SUM,
  REDUCE_MEAN,
  REDUCE_MAX,
  REDUCE_MIN,
  REDUCE_PROD,
  REDUCE_L1,
  REDUCE_L2,
  REDUCE_SUM_SQUARE,
  REDUCE_LOG_SUM,
  REDUCE_LOG_SUM_EXP,
} reduction_t;

typedef union lane {
  double f;
  int64_t i;
} lane_t;

_Static_assert(sizeof(lane_t) == 8, "a block of lanes holds converted elements");

/* Adds `count` elements to as many lanes; `shifts` are the maxima of LogSumExp. */
typedef void (*accumulate_fn_t)(lane_t *lanes, const lane_t *values, const lane_t *shifts, int64_t count);

/* How a lane takes up an element. */
typedef enum accumulator {
  ACCUMULATE_SUM,
  ACCUMULATE_MAX,
  ACCUMULATE_MIN,
  ACCUMULATE_PROD,
  ACCUMULATE_L1,
  ACCUMULATE_SQUARE,
  ACCUMULATE_EXP,
} accumulator_t;

typedef struct reduce_state {
  reduction_t reduction;
  bool keep_dims;
  bool noop_with_empty_axes;
  bool is_integer; /* lanes hold integers */
  uint64_t flip;   /* on load and store: makes unsigned 64-bit order that of signed */
  accumulator_t accumulator;
} reduce_state_t;

#define ACCUMULATE(name, EXPRESSION)                                                                      \
  CPU_VECTOR static void name(lane_t *lanes, const lane_t *values, const lane_t *shifts, int64_t count) { \
    (void)shifts;                                                                                         \
    CPU_INDEPENDENT                                                                                       \
    for (int64_t k = 0; k < count; k++) {                                                                 \
      lane_t a = lanes[k];                                                                                \
      lane_t x = values[k];                                                                               \
      lanes[k] = (lane_t){EXPRESSION};                                                                    \
    }                                                                                                     \
  }

#define WRAP_ADD(x, y) (int64_t)((uint64_t)(x) + (uint64_t)(y))
#define WRAP_MULTIPLY(x, y) (int64_t)((uint64_t)(x) * (uint64_t)(y))

ACCUMULATE(sum_float, .f = a.f + x.f)
ACCUMULATE(max_float, .f = a.f >= x.f || a.f != a.f ? a.f : x.f)
ACCUMULATE(min_float, .f = a.f <= x.f || a.f != a.f ? a.f : x.f)
ACCUMULATE(prod_float, .f = a.f * x.f)
ACCUMULATE(l1_float, .f = a.f + fabs(x.f))
ACCUMULATE(square_float, .f = a.f + x.f * x.f)
ACCUMULATE(exp_float, .f = a.f + exp(x.f - shifts[k].f))
ACCUMULATE(sum_integer, .i = WRAP_ADD(a.i, x.i))
ACCUMULATE(max_integer, .i = a.i > x.i ? a.i : x.i)
ACCUMULATE(min_integer, .i = a.i < x.i ? a.i : x.i)
ACCUMULATE(prod_integer, .i = WRAP_MULTIPLY(a.i, x.i))
ACCUMULATE(l1_integer, .i = WRAP_ADD(a.i, x.i < 0 ? WRAP_MULTIPLY(x.i, -1) : x.i))
ACCUMULATE(square_integer, .i = WRAP_ADD(a.i, WRAP_MULTIPLY(x.i, x.i)))

static const accumulate_fn_t accumulate_floats[] = {
    [ACCUMULATE_SUM] = sum_float,   [ACCUMULATE_MAX] = max_float, [ACCUMULATE_MIN] = min_float,
    [ACCUMULATE_PROD] = prod_float, [ACCUMULATE_L1] = l1_float,   [ACCUMULATE_SQUARE] = square_float,
    [ACCUMULATE_EXP] = exp_float,
};

/* The last one needs floats. */
static const accumulate_fn_t accumulate_integers[] = {
    [ACCUMULATE_SUM] = sum_integer,   [ACCUMULATE_MAX] = max_integer, [ACCUMULATE_MIN] = min_integer,
    [ACCUMULATE_PROD] = prod_integer, [ACCUMULATE_L1] = l1_integer,   [ACCUMULATE_SQUARE] = square_integer,
};

static const struct {
  const char *op;
  reduction_t reduction;
  accumulator_t accumulator;
  bool needs_floats;
} table[] = {
    {"ReduceSum", REDUCE_SUM, ACCUMULATE_SUM, false},
    {"ReduceMean", REDUCE_MEAN, ACCUMULATE_SUM, false},
    {"ReduceMax", REDUCE_MAX, ACCUMULATE_MAX, false},
    {"ReduceMin", REDUCE_MIN, ACCUMULATE_MIN, false},
    {"ReduceProd", REDUCE_PROD, ACCUMULATE_PROD, false},
    {"ReduceL1", REDUCE_L1, ACCUMULATE_L1, false},
    {"ReduceL2", REDUCE_L2, ACCUMULATE_SQUARE, true},
    {"ReduceSumSquare", REDUCE_SUM_SQUARE, ACCUMULATE_SQUARE, false},
    {"ReduceLogSum", REDUCE_LOG_SUM, ACCUMULATE_SUM, true},
    {"ReduceLogSumExp", REDUCE_LOG_SUM_EXP, ACCUMULATE_EXP, true},
};

static cleave_status_t prepare_reduce(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  reduce_state_t *self = state;
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  self->keep_dims = cleave_view_int(prepare->node, "keepdims", 1) != 0;
  self->noop_with_empty_axes = cleave_view_int(prepare->node, "noop_with_empty_axes", 0) != 0;
  for (size_t k = 0; k < sizeof table / sizeof table[0]; k++) {
    if (cleave_view_text_equal(table[k].op, prepare->node->op)) {
      self->reduction = table[k].reduction;
      self->is_integer = !cpu_dtype_is_float(dtype) && !table[k].needs_floats;
      self->accumulator = table[k].accumulator;
    }
  }
  bool is_order = self->reduction == REDUCE_MAX || self->reduction == REDUCE_MIN;
  self->flip = dtype == CLEAVE_DTYPE_U64 && is_order ? UINT64_C(1) << 63 : 0;
  if (cpu_output_dtype(prepare, 0) != dtype || !cpu_dtype_is_plain(dtype) ||
      (dtype == CLEAVE_DTYPE_BOOL && !is_order)) {
    return cpu_fail_types(prepare, message);
  }
  return CLEAVE_OK;
}

/* Merged groups of dims: kept ones in order, reduced ones in order; the last dim of the input is in `last`.
 */
typedef struct reduce_work {
  const cpu_call_t *call;
  const reduce_state_t *state;
  const cpu_tensor_t *from;
  cpu_tensor_t *to;
  int32_t kept_rank;
  int32_t reduced_rank;
  int64_t kept_dims[CLEAVE_MAX_RANK];
  int64_t kept_strides[CLEAVE_MAX_RANK]; /* elements of the input */
  int64_t reduced_dims[CLEAVE_MAX_RANK];
  int64_t reduced_strides[CLEAVE_MAX_RANK];
  int64_t reduced_count; /* elements per output */
  int64_t row_length;    /* of the last group */
  bool last_is_reduced;
  int64_t lanes;          /* per block */
  int64_t blocks_per_row; /* blocks of outputs along a kept last group */
} reduce_work_t;

static void load(const reduce_work_t *work, int64_t offset, int64_t count, lane_t *values) {
  size_t size = cleave_dtype_size(work->from->dtype);
  const unsigned char *source = (const unsigned char *)work->from->data + (size_t)offset * size;
  cpu_convert(work->from->dtype, source, work->state->is_integer ? CLEAVE_DTYPE_I64 : CLEAVE_DTYPE_F64,
              values, count);
  if (work->state->flip != 0) {
    for (int64_t k = 0; k < count; k++) {
      values[k].i = (int64_t)((uint64_t)values[k].i ^ work->state->flip);
    }
  }
}

static accumulate_fn_t accumulate_fn(const reduce_work_t *work, accumulator_t accumulator) {
  return work->state->is_integer ? accumulate_integers[accumulator] : accumulate_floats[accumulator];
}

/* The result of no elements at all. */
static lane_t start_value(const reduce_work_t *work, accumulator_t accumulator) {
  bool is_integer = work->state->is_integer;
  bool is_max = accumulator == ACCUMULATE_MAX;
  if (accumulator == ACCUMULATE_PROD) {
    return is_integer ? (lane_t){.i = 1} : (lane_t){.f = 1.0};
  }
  if (!is_max && accumulator != ACCUMULATE_MIN) {
    return is_integer ? (lane_t){.i = 0} : (lane_t){.f = 0.0};
  }
  if (!is_integer) {
    return (lane_t){.f = is_max ? -INFINITY : INFINITY};
  }
  cleave_dtype_t dtype = work->from->dtype;
  int64_t bits = (int64_t)cleave_dtype_size(dtype) * 8;
  bool is_signed = dtype == CLEAVE_DTYPE_I8 || dtype == CLEAVE_DTYPE_I16 || dtype == CLEAVE_DTYPE_I32;
  if (bits == 64) {
    return (lane_t){.i = is_max ? INT64_MIN : INT64_MAX};
  }
  if (dtype == CLEAVE_DTYPE_BOOL) {
    return (lane_t){.i = is_max ? 0 : 1};
  }
  int64_t low = is_signed ? -(INT64_C(1) << (bits - 1)) : 0;
  int64_t high = is_signed ? (INT64_C(1) << (bits - 1)) - 1 : (INT64_C(1) << bits) - 1;
  return (lane_t){.i = is_max ? low : high};
}

/* Runs over all reduced rows that belong to the outputs at `offset`, and accumulates them into the lanes. */
static void accumulate_rows(const reduce_work_t *work, accumulator_t accumulator, int64_t offset,
                            int64_t lanes, const lane_t *shifts, lane_t *out) {
  lane_t values[CPU_BLOCK];
  int64_t index[CLEAVE_MAX_RANK] = {0};
  int32_t outer = work->last_is_reduced ? work->reduced_rank - 1 : work->reduced_rank;
  int64_t length = work->last_is_reduced ? work->row_length : lanes;
  accumulate_fn_t accumulate = accumulate_fn(work, accumulator);
  lane_t start = start_value(work, accumulator);
  for (int64_t k = 0; k < lanes; k++) {
    out[k] = start;
  }
  if (work->reduced_count == 0) {
    return;
  }
  for (;;) {
    for (int64_t k = 0; k < length; k += CPU_BLOCK) {
      int64_t count = length - k < CPU_BLOCK ? length - k : CPU_BLOCK;
      load(work, offset + k, count, values);
      accumulate(out, values, shifts, count);
    }
    int32_t d = outer - 1;
    for (; d >= 0; d--) {
      offset += work->reduced_strides[d];
      if (++index[d] < work->reduced_dims[d]) {
        break;
      }
      offset -= work->reduced_strides[d] * work->reduced_dims[d];
      index[d] = 0;
    }
    if (d < 0) {
      return;
    }
  }
}

/* Joins the lanes of one output into the first. */
static void join_lanes(const reduce_work_t *work, accumulator_t accumulator, lane_t *lanes, int64_t count) {
  bool is_sum =
      accumulator == ACCUMULATE_L1 || accumulator == ACCUMULATE_SQUARE || accumulator == ACCUMULATE_EXP;
  accumulate_fn_t join = accumulate_fn(work, is_sum ? ACCUMULATE_SUM : accumulator);
  while (count > 1) {
    int64_t half = count / 2;
    join(lanes, lanes + (count - half), NULL, half);
    count -= half;
  }
}

static void finish(const reduce_work_t *work, lane_t *lanes, const lane_t *shifts, int64_t count,
                   int64_t output) {
  const reduce_state_t *state = work->state;
  for (int64_t k = 0; k < count; k++) {
    switch (state->reduction) {
      case REDUCE_MEAN:
        if (state->is_integer) {
          lanes[k].i = work->reduced_count == 0 ? 0 : lanes[k].i / work->reduced_count;
        } else {
          lanes[k].f /= (double)work->reduced_count;
        }
        break;
      case REDUCE_L2: lanes[k].f = sqrt(lanes[k].f); break;
      case REDUCE_LOG_SUM: lanes[k].f = log(lanes[k].f); break;
      case REDUCE_LOG_SUM_EXP: lanes[k].f = log(lanes[k].f) + shifts[k].f; break;
      default: break;
    }
    lanes[k].i = state->flip != 0 ? (int64_t)((uint64_t)lanes[k].i ^ state->flip) : lanes[k].i;
  }
  size_t size = cleave_dtype_size(work->to->dtype);
  cpu_convert(state->is_integer ? CLEAVE_DTYPE_I64 : CLEAVE_DTYPE_F64, lanes, work->to->dtype,
              (unsigned char *)work->to->data + (size_t)output * size, count);
}

/* One block of outputs whose first element of the input is at `offset`. */
static void reduce_block(const reduce_work_t *work, int64_t offset, int64_t outputs, int64_t output) {
  lane_t lanes[CPU_BLOCK];
  lane_t shifts[CPU_BLOCK];
  bool is_log_sum_exp = work->state->reduction == REDUCE_LOG_SUM_EXP;
  int64_t count = work->last_is_reduced ? work->lanes : outputs;
  if (is_log_sum_exp) {
    accumulate_rows(work, ACCUMULATE_MAX, offset, count, NULL, shifts);
    if (work->last_is_reduced) {
      join_lanes(work, ACCUMULATE_MAX, shifts, count);
    }
    for (int64_t k = 0; k < count; k++) {
      shifts[k].f = work->last_is_reduced ? shifts[0].f : shifts[k].f;
      shifts[k].f = isfinite(shifts[k].f) ? shifts[k].f : 0.0;
    }
  }
  accumulate_rows(work, work->state->accumulator, offset, count, shifts, lanes);
  if (work->last_is_reduced) {
    join_lanes(work, work->state->accumulator, lanes, count);
  }
  finish(work, lanes, shifts, outputs, output);
}

static void reduce_units(void *context, int64_t begin, int64_t end) {
  const reduce_work_t *work = context;
  int32_t outer = work->last_is_reduced ? work->kept_rank : work->kept_rank - 1;
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t block = unit % work->blocks_per_row;
    int64_t row = unit / work->blocks_per_row;
    int64_t rest = row;
    int64_t offset = block * CPU_BLOCK;
    for (int32_t d = outer - 1; d >= 0; d--) {
      offset += rest % work->kept_dims[d] * work->kept_strides[d];
      rest /= work->kept_dims[d];
    }
    if (work->last_is_reduced) {
      reduce_block(work, offset, 1, row);
    } else {
      int64_t left = work->row_length - block * CPU_BLOCK;
      reduce_block(work, offset, left < CPU_BLOCK ? left : CPU_BLOCK,
                   row * work->row_length + block * CPU_BLOCK);
    }
  }
}

/* Sorts the dims into groups. Dims of size 1 belong to no group. */
static void group_dims(reduce_work_t *work, const bool *reduced) {
  int64_t strides[CLEAVE_MAX_RANK];
  cpu_dense_strides(work->from->rank, work->from->dims, 1, strides);
  int last_kind = -1;
  work->reduced_count = 1;
  work->row_length = 1;
  for (int32_t d = 0; d < work->from->rank; d++) {
    int64_t dim = work->from->dims[d];
    if (dim == 1) {
      continue;
    }
    int kind = reduced[d] ? 1 : 0;
    int32_t *rank = reduced[d] ? &work->reduced_rank : &work->kept_rank;
    int64_t *dims = reduced[d] ? work->reduced_dims : work->kept_dims;
    int64_t *group_strides = reduced[d] ? work->reduced_strides : work->kept_strides;
    if (kind == last_kind) {
      dims[*rank - 1] *= dim;
      group_strides[*rank - 1] = strides[d];
    } else {
      dims[*rank] = dim;
      group_strides[*rank] = strides[d];
      (*rank)++;
    }
    last_kind = kind;
    work->reduced_count *= reduced[d] ? dim : 1;
    work->row_length = dims[*rank - 1];
  }
  work->last_is_reduced = last_kind != 0;
  if (last_kind == -1) { /* a single element: one reduced group of one */
    work->reduced_rank = 1;
    work->reduced_dims[0] = 1;
    work->reduced_strides[0] = 1;
  }
}

static void reduce(const cpu_call_t *call, const bool *reduced) {
  reduce_work_t work = {.call = call, .state = call->state, .from = call->inputs[0], .to = call->outputs[0]};
  if (work.to->count == 0) {
    return;
  }
  group_dims(&work, reduced);
  int64_t rows = 1;
  int32_t outer = work.last_is_reduced ? work.kept_rank : work.kept_rank - 1;
  for (int32_t d = 0; d < outer; d++) {
    rows *= work.kept_dims[d];
  }
  work.lanes = work.row_length < 1 ? 1 : work.row_length < CPU_BLOCK ? work.row_length : CPU_BLOCK;
  work.blocks_per_row = work.last_is_reduced ? 1 : (work.row_length + CPU_BLOCK - 1) / CPU_BLOCK;
  int64_t per_unit = work.reduced_count * (work.last_is_reduced ? 1 : work.lanes);
  int64_t cost = work.state->reduction == REDUCE_LOG_SUM_EXP ? 16 : 2;
  cpu_parallel(call, rows * work.blocks_per_row, CPU_WORK_GRAIN / cost / (per_unit < 1 ? 1 : per_unit) + 1,
               reduce_units, &work);
}

static cleave_status_t run_reduce(const cpu_call_t *call, cleave_message_t *message) {
  const reduce_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *axes = cpu_input(call, 1);
  bool reduced[CLEAVE_MAX_RANK] = {false};
  bool has_axes = axes != NULL && axes->count > 0;
  for (int64_t k = 0; has_axes && k < axes->count; k++) {
    int32_t axis = 0;
    CPU_TRY(cpu_find_axis(cpu_read_int(axes, k), data->rank, &axis, message));
    reduced[axis] = true;
  }
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  int32_t rank = 0;
  for (int32_t d = 0; d < data->rank; d++) {
    reduced[d] = reduced[d] || (!has_axes && !state->noop_with_empty_axes);
    if (!reduced[d] || state->keep_dims) {
      dims[rank++] = reduced[d] ? 1 : data->dims[d];
    }
  }
  CPU_TRY(cpu_output_shape(call, 0, rank, dims, message));
  if (!has_axes && state->noop_with_empty_axes) {
    cpu_copy(call, call->outputs[0]->data, data->data, data->count * (int64_t)cleave_dtype_size(data->dtype));
    return CLEAVE_OK;
  }
  reduce(call, reduced);
  return CLEAVE_OK;
}

#define KERNEL(name)                                                                                \
  {                                                                                                 \
    .op = name, .state_size = sizeof(reduce_state_t), .prepare = prepare_reduce, .run = run_reduce, \
    .required_inputs = 1                                                                            \
  }

const cpu_kernel_t cpu_kernels_reduce[] = {
    KERNEL("ReduceSum"),
    KERNEL("ReduceMean"),
    KERNEL("ReduceMax"),
    KERNEL("ReduceMin"),
    KERNEL("ReduceProd"),
    KERNEL("ReduceL1"),
    KERNEL("ReduceL2"),
    KERNEL("ReduceSumSquare"),
    KERNEL("ReduceLogSum"),
    KERNEL("ReduceLogSumExp"),
    {0},
};
