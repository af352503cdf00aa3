// SPDX-License-Identifier: Apache-2.0
// Operators whose output shape depends on the data: NonZero, Compress, Unique. They count first, ask for the
// output, then write.
#include <string.h>

#include "cpu/common/index.h"
#include "cpu/common/loop.h"
#include "kernels/convert.h"

/* ---- NonZero */

static bool is_nonzero(const cpu_tensor_t *tensor, int64_t k) {
  return cpu_dtype_is_float(tensor->dtype) ? cpu_read_float(tensor, k) != 0 : cpu_read_int(tensor, k) != 0;
}

static cleave_status_t prepare_nonzero(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  (void)state;
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  return cpu_dtype_is_plain(dtype) ? CLEAVE_OK
                                   : kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                                                 "dtype %s is not supported", cpu_dtype_name(dtype));
}

static cleave_status_t run_nonzero(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *data = call->inputs[0];
  int64_t found = 0;
  for (int64_t k = 0; k < data->count; k++) {
    found += is_nonzero(data, k);
  }
  int64_t dims[2] = {data->rank, found};
  CPU_TRY(cpu_output_shape(call, 0, 2, dims, message));
  int64_t index[CLEAVE_MAX_RANK] = {0};
  int64_t *out = call->outputs[0]->data;
  int64_t next = 0;
  for (int64_t k = 0; k < data->count; k++) {
    if (is_nonzero(data, k)) {
      for (int32_t d = 0; d < data->rank; d++) {
        out[d * found + next] = index[d];
      }
      next++;
    }
    cpu_next_index(data->rank, data->dims, index);
  }
  return CLEAVE_OK;
}

/* ---- Compress */

/* A tensor as [outer, dim, inner]; without an axis all of it is one dim. */
typedef struct axis_view {
  int64_t outer;
  int64_t dim;
  int64_t inner;
} axis_view_t;

typedef struct unique_state {
  bool has_axis;
  int64_t axis;
  bool sorted;
} unique_state_t;

static cleave_status_t prepare_axis(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  unique_state_t *self = state;
  self->has_axis = cleave_view_attribute(prepare->node, "axis") != NULL;
  self->axis = cleave_view_int(prepare->node, "axis", 0);
  self->sorted = cleave_view_int(prepare->node, "sorted", 1) != 0;
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  for (uint32_t k = 0; k < 4; k++) {
    cleave_dtype_t output = cpu_output_dtype(prepare, k);
    if (output != CLEAVE_DTYPE_UNKNOWN && output != (k == 0 ? dtype : CLEAVE_DTYPE_I64)) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "output %u is %s", (unsigned)k,
                         cpu_dtype_name(output));
    }
  }
  return CLEAVE_OK;
}

static bool view_axis(const unique_state_t *state, const cpu_tensor_t *data, axis_view_t *view,
                      int32_t *axis) {
  *axis = 0;
  *view = (axis_view_t){.outer = 1, .dim = data->count, .inner = 1};
  if (!state->has_axis) {
    return true;
  }
  if (!cpu_axis(state->axis, data->rank, axis)) {
    return false;
  }
  view->outer = cpu_count(*axis, data->dims);
  view->dim = data->dims[*axis];
  view->inner = cpu_count(data->rank - *axis - 1, data->dims + *axis + 1);
  return true;
}

/* The shape of output 0 with `count` places along the axis. */
static int32_t picked_shape(const unique_state_t *state, const cpu_tensor_t *data, int32_t axis,
                            int64_t count, int64_t *dims) {
  if (!state->has_axis) {
    dims[0] = count;
    return 1;
  }
  for (int32_t d = 0; d < data->rank; d++) {
    dims[d] = d == axis ? count : data->dims[d];
  }
  return data->rank;
}

/* Copies place `from` along the axis of the input to place `to` of the output, which has `count` of them. */
static void copy_place(const cpu_call_t *call, const axis_view_t *view, int64_t from, int64_t to,
                       int64_t count) {
  size_t bytes = (size_t)view->inner * cleave_dtype_size(call->inputs[0]->dtype);
  const unsigned char *source = call->inputs[0]->data;
  unsigned char *destination = call->outputs[0]->data;
  for (int64_t o = 0; o < view->outer; o++) {
    memcpy(destination + (size_t)(o * count + to) * bytes, source + (size_t)(o * view->dim + from) * bytes,
           bytes);
  }
}

static cleave_status_t run_compress(const cpu_call_t *call, cleave_message_t *message) {
  const unique_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *condition = call->inputs[1];
  axis_view_t view;
  int32_t axis = 0;
  if (condition->dtype != CLEAVE_DTYPE_BOOL || !view_axis(state, data, &view, &axis)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                       "axis %lld is outside rank %d, or the condition is not bool", (long long)state->axis,
                       (int)data->rank);
  }
  const uint8_t *flags = condition->data;
  int64_t length = condition->count < view.dim ? condition->count : view.dim;
  int64_t found = 0;
  for (int64_t k = 0; k < length; k++) {
    found += flags[k] != 0;
  }
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  int32_t rank = picked_shape(state, data, axis, found, dims);
  cleave_status_t status = cpu_output_shape(call, 0, rank, dims, message);
  int64_t next = 0;
  for (int64_t k = 0; status == CLEAVE_OK && k < length; k++) {
    if (flags[k] != 0) {
      copy_place(call, &view, k, next++, found);
    }
  }
  return status;
}

/* ---- Unique */

typedef struct comparison {
  const cpu_tensor_t *data;
  axis_view_t view;
} comparison_t;

static int compare_elements(const cpu_tensor_t *data, int64_t a, int64_t b) {
  if (data->dtype == CLEAVE_DTYPE_STRING) {
    const char *const *texts = data->data;
    int order = strcmp(texts[a] == NULL ? "" : texts[a], texts[b] == NULL ? "" : texts[b]);
    return (order > 0) - (order < 0);
  }
  if (cpu_dtype_is_float(data->dtype)) {
    double x = cpu_read_float(data, a);
    double y = cpu_read_float(data, b);
    if (x != x || y != y) { /* NaN comes last, and equals NaN */
      return (x != x) - (y != y);
    }
    return (x > y) - (x < y);
  }
  int64_t x = cpu_read_int(data, a);
  int64_t y = cpu_read_int(data, b);
  if (data->dtype == CLEAVE_DTYPE_U64) {
    return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
  }
  return (x > y) - (x < y);
}

/* Compares two places along the axis, element by element. */
static int compare_places(const comparison_t *comparison, int64_t a, int64_t b) {
  const axis_view_t *view = &comparison->view;
  for (int64_t o = 0; o < view->outer; o++) {
    for (int64_t i = 0; i < view->inner; i++) {
      int order = compare_elements(comparison->data, (o * view->dim + a) * view->inner + i,
                                   (o * view->dim + b) * view->inner + i);
      if (order != 0) {
        return order;
      }
    }
  }
  return 0;
}

/* Stable merge sort of places; `spare` is as long as `places`. */
static void sort_places(const comparison_t *comparison, int64_t *places, int64_t *spare, int64_t count) {
  for (int64_t width = 1; width < count; width *= 2) {
    for (int64_t start = 0; start < count; start += 2 * width) {
      int64_t middle = start + width < count ? start + width : count;
      int64_t end = middle + width < count ? middle + width : count;
      int64_t left = start;
      int64_t right = middle;
      for (int64_t k = start; k < end; k++) {
        bool take_left =
            right >= end || (left < middle && compare_places(comparison, places[left], places[right]) <= 0);
        spare[k] = take_left ? places[left++] : places[right++];
      }
    }
    memcpy(places, spare, (size_t)count * sizeof *places);
  }
}

/* Three arrays of one entry per place. */
static size_t unique_scratch(const cpu_call_t *call) {
  const cpu_tensor_t *data = call->inputs[0];
  axis_view_t view;
  int32_t axis = 0;
  return view_axis(call->state, data, &view, &axis) ? (size_t)view.dim * 4 * sizeof(int64_t) : 0;
}

/* Which places have the same value, and in which order the distinct values come; returns how many there are.
 */
static int64_t find_values(const unique_state_t *state, const comparison_t *comparison, int64_t *places,
                           int64_t *groups, int64_t *firsts, int64_t *ranks) {
  int64_t dim = comparison->view.dim;
  for (int64_t k = 0; k < dim; k++) {
    places[k] = k;
  }
  sort_places(comparison, places, groups, dim);
  int64_t found = 0;
  for (int64_t k = 0; k < dim; k++) {
    if (k == 0 || compare_places(comparison, places[k - 1], places[k]) != 0) {
      firsts[found++] = places[k]; /* the sort is stable: the smallest place comes first */
    }
    groups[places[k]] = found - 1;
  }
  int64_t next = 0;
  for (int64_t k = 0; k < dim; k++) {
    if (firsts[groups[k]] == k) {
      ranks[groups[k]] = state->sorted ? groups[k] : next++;
    }
  }
  return found;
}

static cleave_status_t run_unique(const cpu_call_t *call, cleave_message_t *message) {
  const unique_state_t *state = call->state;
  comparison_t comparison = {.data = call->inputs[0]};
  int32_t axis = 0;
  if (!view_axis(state, comparison.data, &comparison.view, &axis)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "axis %lld is outside rank %d", (long long)state->axis,
                       (int)comparison.data->rank);
  }
  int64_t dim = comparison.view.dim;
  int64_t *places = call->scratch; /* places in sorted order */
  int64_t *groups = places + dim;  /* per place: which distinct value it has */
  int64_t *firsts = groups + dim;  /* per distinct value: its first place */
  int64_t *ranks = firsts + dim;   /* per distinct value: if the output has it */
  int64_t found = find_values(state, &comparison, places, groups, firsts, ranks);
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  int32_t rank = picked_shape(state, comparison.data, axis, found, dims);
  for (uint32_t o = 0; o < 4; o++) {
    if (cpu_output(call, o) == NULL) {
      continue;
    }
    int64_t length = o == 2 ? dim : found;
    CPU_TRY(cpu_output_shape(call, o, o == 0 ? rank : 1, o == 0 ? dims : &length, message));
    int64_t *out = call->outputs[o]->data;
    for (int64_t g = 0; g < found; g++) {
      if (o == 0) {
        copy_place(call, &comparison.view, firsts[g], ranks[g], found);
      } else if (o == 1) {
        out[ranks[g]] = firsts[g];
      } else if (o == 3) {
        out[ranks[g]] = 0;
      }
    }
    for (int64_t k = 0; k < dim && o >= 2; k++) {
      if (o == 2) {
        out[k] = ranks[groups[k]];
      } else {
        out[ranks[groups[k]]]++;
      }
    }
  }
  return CLEAVE_OK;
}

const cpu_kernel_t cpu_kernels_unique[] = {
    CPU_KERNEL("NonZero", 1, .prepare = prepare_nonzero, .run = run_nonzero),
    CPU_KERNEL("Compress", 2, .state_size = sizeof(unique_state_t), .prepare = prepare_axis,
               .run = run_compress),
    CPU_KERNEL("Unique", 1, .state_size = sizeof(unique_state_t), .prepare = prepare_axis,
               .scratch = unique_scratch, .run = run_unique),
    {0},
};
