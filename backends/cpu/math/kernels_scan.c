// SPDX-License-Identifier: Apache-2.0
// Operators that walk along one axis: ArgMax, ArgMin and CumSum. A tensor is seen as [outer, length, inner].
#include "cpu/common/loop.h"
#include "kernels/vector_math.h"

typedef union lane {
  double f;
  int64_t i;
} lane_t;

typedef struct scan_work scan_work_t;

struct scan_work {
  const void *state;
  const cpu_tensor_t *from;
  cpu_tensor_t *to;
  int64_t length;
  int64_t inner;
  int64_t blocks; /* of inner */
  bool is_integer;
  uint64_t flip; /* makes unsigned 64-bit order that of signed */
  /* If inner is 1, a unit is a row; otherwise `count` columns side by side from `start` on. */
  void (*row)(const scan_work_t *work, int64_t outer);
  void (*columns)(const scan_work_t *work, int64_t outer, int64_t start, int64_t count);
};

/* Splits a tensor at an axis; the units are blocks of inner elements of every outer index. */
static int64_t split_at(scan_work_t *work, int32_t axis) {
  const cpu_tensor_t *from = work->from;
  work->length = from->rank == 0 ? 1 : from->dims[axis];
  work->inner = from->rank == 0 ? 1 : cpu_count(from->rank - axis - 1, from->dims + axis + 1);
  work->blocks = (work->inner + CPU_BLOCK - 1) / CPU_BLOCK;
  work->is_integer = !cpu_dtype_is_float(from->dtype);
  return (from->rank == 0 ? 1 : cpu_count(axis, from->dims)) * work->blocks;
}

static void scan_units(void *context, int64_t begin, int64_t end) {
  const scan_work_t *work = context;
  for (int64_t unit = begin; unit < end; unit++) {
    if (work->inner == 1) {
      work->row(work, unit);
    } else {
      int64_t start = unit % work->blocks * CPU_BLOCK;
      int64_t count = work->inner - start < CPU_BLOCK ? work->inner - start : CPU_BLOCK;
      work->columns(work, unit / work->blocks, start, count);
    }
  }
}

static void run_units(const cpu_call_t *call, scan_work_t *work, int64_t units) {
  int64_t per_unit = work->length * (work->inner < CPU_BLOCK ? work->inner : CPU_BLOCK);
  cpu_parallel(call, units, 8192 / per_unit + 1, scan_units, work);
}

static void load(const scan_work_t *work, int64_t offset, int64_t count, lane_t *values) {
  size_t size = cleave_dtype_size(work->from->dtype);
  cpu_convert(work->from->dtype, (const unsigned char *)work->from->data + (size_t)offset * size,
              work->is_integer ? CLEAVE_DTYPE_I64 : CLEAVE_DTYPE_F64, values, count);
  for (int64_t k = 0; work->flip != 0 && k < count; k++) {
    values[k].i = (int64_t)((uint64_t)values[k].i ^ work->flip);
  }
}

/* ---- ArgMax and ArgMin */

typedef struct arg_state {
  int64_t axis;
  bool keep_dims;
  bool last; /* of equal values */
  bool is_max;
} arg_state_t;

static cleave_status_t prepare_arg(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  arg_state_t *self = state;
  self->axis = cleave_view_int(prepare->node, "axis", 0);
  self->keep_dims = cleave_view_int(prepare->node, "keepdims", 1) != 0;
  self->last = cleave_view_int(prepare->node, "select_last_index", 0) != 0;
  self->is_max = cleave_view_text_equal(prepare->node->op, "ArgMax");
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  if (!cpu_dtype_is_plain(dtype) || cpu_output_dtype(prepare, 0) != CLEAVE_DTYPE_I64) {
    return cpu_fail_types(prepare, message);
  }
  return CLEAVE_OK;
}

/* Whether `a` takes the place of `b`; NaN comes before every number. */
static bool is_better(const arg_state_t *state, bool is_integer, lane_t a, lane_t b) {
  if (is_integer) {
    return state->is_max ? a.i > b.i || (state->last && a.i == b.i)
                         : a.i < b.i || (state->last && a.i == b.i);
  }
  if (a.f != a.f || b.f != b.f) {
    return a.f != a.f && (b.f == b.f || state->last);
  }
  return (state->is_max ? a.f > b.f : a.f < b.f) || (state->last && a.f == b.f);
}

static void arg_row(const scan_work_t *work, int64_t outer) {
  const arg_state_t *state = work->state;
  lane_t values[CPU_BLOCK];
  lane_t best = {.i = 0};
  int64_t index = 0;
  for (int64_t start = 0; start < work->length; start += CPU_BLOCK) {
    int64_t count = work->length - start < CPU_BLOCK ? work->length - start : CPU_BLOCK;
    load(work, outer * work->length + start, count, values);
    best = start == 0 ? values[0] : best;
    for (int64_t k = start == 0 ? 1 : 0; k < count; k++) {
      if (is_better(state, work->is_integer, values[k], best)) {
        best = values[k];
        index = start + k;
      }
    }
  }
  ((int64_t *)work->to->data)[outer] = index;
}

static void arg_columns(const scan_work_t *work, int64_t outer, int64_t start, int64_t count) {
  const arg_state_t *state = work->state;
  lane_t values[CPU_BLOCK];
  lane_t best[CPU_BLOCK];
  int64_t *out = (int64_t *)work->to->data + outer * work->inner + start;
  int64_t offset = outer * work->length * work->inner + start;
  load(work, offset, count, best);
  for (int64_t k = 0; k < count; k++) {
    out[k] = 0;
  }
  for (int64_t n = 1; n < work->length; n++) {
    load(work, offset + n * work->inner, count, values);
    for (int64_t k = 0; k < count; k++) {
      if (is_better(state, work->is_integer, values[k], best[k])) {
        best[k] = values[k];
        out[k] = n;
      }
    }
  }
}

static cleave_status_t run_arg(const cpu_call_t *call, cleave_message_t *message) {
  const arg_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  int32_t axis = 0;
  CPU_TRY(cpu_find_axis(state->axis, data->rank == 0 ? 1 : data->rank, &axis, message));
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  int32_t rank = 0;
  for (int32_t d = 0; d < data->rank; d++) {
    if (d != axis || state->keep_dims) {
      dims[rank++] = d == axis ? 1 : data->dims[d];
    }
  }
  cleave_status_t status = cpu_output_shape(call, 0, rank, dims, message);
  if (status != CLEAVE_OK || call->outputs[0]->count == 0) {
    return status;
  }
  scan_work_t work = {
      .state = state, .from = data, .to = call->outputs[0], .row = arg_row, .columns = arg_columns};
  work.flip = data->dtype == CLEAVE_DTYPE_U64 ? UINT64_C(1) << 63 : 0;
  int64_t units = split_at(&work, axis);
  if (work.length == 0) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "axis %d has no elements", (int)axis);
  }
  run_units(call, &work, units);
  return CLEAVE_OK;
}

/* ---- CumSum */

typedef struct cumsum_state {
  bool exclusive;
  bool reverse;
} cumsum_state_t;

static cleave_status_t prepare_cumsum(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  cumsum_state_t *self = state;
  self->exclusive = cleave_view_int(prepare->node, "exclusive", 0) != 0;
  self->reverse = cleave_view_int(prepare->node, "reverse", 0) != 0;
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  if (!(cpu_dtype_is_float(dtype) || cpu_dtype_is_integer(dtype)) || cpu_output_dtype(prepare, 0) != dtype) {
    return cpu_fail_types(prepare, message);
  }
  return CLEAVE_OK;
}

static void store(const scan_work_t *work, int64_t offset, int64_t count, const lane_t *values) {
  size_t size = cleave_dtype_size(work->to->dtype);
  cpu_convert(work->is_integer ? CLEAVE_DTYPE_I64 : CLEAVE_DTYPE_F64, values, work->to->dtype,
              (unsigned char *)work->to->data + (size_t)offset * size, count);
}

static lane_t add(const scan_work_t *work, lane_t a, lane_t b) {
  return work->is_integer ? (lane_t){.i = (int64_t)((uint64_t)a.i + (uint64_t)b.i)}
                          : (lane_t){.f = a.f + b.f};
}

/* One row along the axis, if the axis is the last one. */
static void cumsum_row(const scan_work_t *work, int64_t outer) {
  const cumsum_state_t *state = work->state;
  lane_t values[CPU_BLOCK];
  lane_t sum = work->is_integer ? (lane_t){.i = 0} : (lane_t){.f = 0};
  for (int64_t done = 0; done < work->length; done += CPU_BLOCK) {
    int64_t count = work->length - done < CPU_BLOCK ? work->length - done : CPU_BLOCK;
    int64_t start = outer * work->length + (state->reverse ? work->length - done - count : done);
    load(work, start, count, values);
    for (int64_t n = 0; n < count; n++) {
      int64_t k = state->reverse ? count - 1 - n : n;
      lane_t next = add(work, sum, values[k]);
      values[k] = state->exclusive ? sum : next;
      sum = next;
    }
    store(work, start, count, values);
  }
}

static void cumsum_columns(const scan_work_t *work, int64_t outer, int64_t start, int64_t count) {
  const cumsum_state_t *state = work->state;
  lane_t values[CPU_BLOCK];
  lane_t sums[CPU_BLOCK];
  for (int64_t k = 0; k < count; k++) {
    sums[k] = work->is_integer ? (lane_t){.i = 0} : (lane_t){.f = 0};
  }
  for (int64_t n = 0; n < work->length; n++) {
    int64_t row = state->reverse ? work->length - 1 - n : n;
    int64_t offset = (outer * work->length + row) * work->inner + start;
    load(work, offset, count, values);
    if (state->exclusive) {
      store(work, offset, count, sums);
    }
    for (int64_t k = 0; k < count; k++) {
      sums[k] = add(work, sums[k], values[k]);
    }
    if (!state->exclusive) {
      store(work, offset, count, sums);
    }
  }
}

static cleave_status_t run_cumsum(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *axis_input = call->inputs[1];
  int32_t axis = 0;
  if (axis_input->count != 1 ||
      !cpu_axis(cpu_read_int(axis_input, 0), data->rank == 0 ? 1 : data->rank, &axis)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "axis is not one number in rank %d", (int)data->rank);
  }
  cleave_status_t status = cpu_output_shape(call, 0, data->rank, data->dims, message);
  if (status != CLEAVE_OK || data->count == 0) {
    return status;
  }
  scan_work_t work = {.state = call->state,
                      .from = data,
                      .to = call->outputs[0],
                      .row = cumsum_row,
                      .columns = cumsum_columns};
  run_units(call, &work, split_at(&work, axis));
  return CLEAVE_OK;
}

/* CumSum reads a block before it writes it, and nothing of the input after that. */
const cpu_kernel_t cpu_kernels_scan[] = {
    CPU_KERNEL("ArgMax", 1, .state_size = sizeof(arg_state_t), .prepare = prepare_arg, .run = run_arg),
    CPU_KERNEL("ArgMin", 1, .state_size = sizeof(arg_state_t), .prepare = prepare_arg, .run = run_arg),
    CPU_KERNEL("CumSum", 2, .state_size = sizeof(cumsum_state_t), .prepare = prepare_cumsum,
               .run = run_cumsum, .inplace = 1),
    {0},
};
