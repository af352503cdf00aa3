// SPDX-License-Identifier: Apache-2.0
// Operators that move nothing if their result is read through strides: a program loads their operand, which
// comes from outside. Shapes are known and have been inferred; what is checked here keeps a load inside of
// its tensor.
#include <string.h>

#include "kernels/convert.h"
#include "lowering.h"

typedef const cleave_node_view_t node_t;
typedef struct viewing {
  lowering_t *lowering;
  node_t *node;
  const cleave_tensor_view_t *result;
  kernel_view_t *view; /* of the operand, which becomes that of the result */
} viewing_t;

void kernel_view_whole(const cleave_tensor_view_t *tensor, kernel_view_t *out_view) {
  int64_t stride = 1;
  *out_view = (kernel_view_t){.rank = tensor->rank};
  for (int32_t d = tensor->rank - 1; d >= 0; d--) {
    out_view->dims[d] = tensor->dims[d];
    out_view->strides[d] = stride;
    stride *= tensor->dims[d];
  }
}

/* The integers of input `index`, or of an attribute; *out_count 0: there are none. */
static cleave_status_t read_integers(const viewing_t *viewing, uint32_t index, int64_t *out,
                                     uint32_t *out_count) {
  const cleave_value_view_t *input = cleave_view_input(viewing->lowering->region, viewing->node, index);
  *out_count = 0;
  if (input == NULL) {
    return CLEAVE_OK;
  }
  const cleave_tensor_view_t *tensor = &input->tensor;
  int64_t size = cleave_view_element_count(tensor);
  if (tensor->data == NULL || tensor->storage != CLEAVE_STORAGE_DENSE || size < 0 || size > CLEAVE_MAX_RANK ||
      (tensor->dtype != CLEAVE_DTYPE_I64 && tensor->dtype != CLEAVE_DTYPE_I32)) {
    return kernel_lower_refuse(viewing->node, "an input that has to be constant is not",
                               viewing->lowering->message);
  }
  cpu_convert(tensor->dtype, tensor->data, CLEAVE_DTYPE_I64, out, size);
  *out_count = (uint32_t)size;
  return CLEAVE_OK;
}

static cleave_status_t refuse(const viewing_t *viewing) {
  return kernel_lower_refuse(viewing->node, "its result is not a view of its operand",
                             viewing->lowering->message);
}

static cleave_status_t view_transpose(const viewing_t *viewing) {
  const kernel_view_t from = *viewing->view;
  uint32_t count = 0;
  const int64_t *order = cleave_view_ints(viewing->node, "perm", &count);
  if (order != NULL && count != (uint32_t)from.rank) {
    return refuse(viewing);
  }
  for (int32_t d = 0; d < from.rank; d++) {
    int64_t at = order != NULL ? order[d] : from.rank - 1 - d;
    if (at < 0 || at >= from.rank) {
      return refuse(viewing);
    }
    viewing->view->dims[d] = from.dims[at];
    viewing->view->strides[d] = from.strides[at];
  }
  return CLEAVE_OK;
}

static cleave_status_t view_expand(const viewing_t *viewing) {
  const kernel_view_t from = *viewing->view;
  const cleave_tensor_view_t *result = viewing->result;
  if (result->rank < from.rank) {
    return refuse(viewing);
  }
  viewing->view->rank = result->rank;
  for (int32_t d = 0; d < result->rank; d++) {
    int32_t own = d - (result->rank - from.rank);
    bool repeats = own < 0 || (from.dims[own] == 1 && result->dims[d] != 1);
    viewing->view->dims[d] = result->dims[d];
    viewing->view->strides[d] = repeats ? 0 : from.strides[own];
    if (!repeats && from.dims[own] != result->dims[d]) {
      return refuse(viewing);
    }
  }
  return CLEAVE_OK;
}

/* Views the same elements in the same order: dense ones, or with axes of one element more or fewer. */
static cleave_status_t view_reshape(const viewing_t *viewing) {
  const kernel_view_t from = *viewing->view;
  const cleave_tensor_view_t *result = viewing->result;
  bool is_dense = true;
  int64_t stride = 1;
  for (int32_t d = from.rank - 1; d >= 0; d--) {
    is_dense = is_dense && (from.dims[d] == 1 || from.strides[d] == stride);
    stride *= from.dims[d];
  }
  if (cleave_view_element_count(result) != stride) {
    return refuse(viewing);
  }
  if (is_dense) {
    kernel_view_whole(result, viewing->view);
    viewing->view->offset = from.offset;
    viewing->view->is_part = true;
    return CLEAVE_OK;
  }
  int32_t next = 0;
  viewing->view->rank = result->rank;
  for (int32_t d = 0; d < result->rank; d++) {
    while (next < from.rank && from.dims[next] == 1) {
      next++;
    }
    bool is_one = result->dims[d] == 1;
    if (!is_one && (next == from.rank || from.dims[next] != result->dims[d])) {
      return refuse(viewing);
    }
    viewing->view->dims[d] = result->dims[d];
    viewing->view->strides[d] = is_one ? 0 : from.strides[next++];
  }
  return CLEAVE_OK;
}

/* `step` elements apart from `start` on, as many as the result has. */
static cleave_status_t cut(const viewing_t *viewing, int32_t axis, int64_t start, int64_t step) {
  kernel_view_t *view = viewing->view;
  int64_t count = viewing->result->dims[axis];
  int64_t size = view->dims[axis];
  bool reaches = count == 0 || (start >= 0 && start < size && step != 0 &&
                                (step > 0 ? (count - 1) <= (size - 1 - start) / step
                                          : step > -INT64_MAX && (count - 1) <= start / -step));
  if (!reaches) {
    return refuse(viewing);
  }
  view->offset += count == 0 ? 0 : start * view->strides[axis];
  view->strides[axis] *= count <= 1 ? 1 : step;
  view->dims[axis] = count;
  return CLEAVE_OK;
}

static cleave_status_t view_slice(const viewing_t *viewing) {
  enum { STARTS, ENDS, AXES, STEPS, LISTS };
  int64_t lists[LISTS][CLEAVE_MAX_RANK];
  uint32_t counts[LISTS];
  int32_t rank = viewing->view->rank;
  if (viewing->node->opset_version < 10 || viewing->result->rank != rank) {
    return refuse(viewing);
  }
  for (uint32_t k = 0; k < LISTS; k++) {
    KERNEL_TRY(read_integers(viewing, k + 1, lists[k], &counts[k]));
  }
  for (uint32_t k = 0; k < counts[STARTS]; k++) {
    int64_t axis = k < counts[AXES] ? lists[AXES][k] : (int64_t)k;
    int64_t step = k < counts[STEPS] ? lists[STEPS][k] : 1;
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis >= rank) {
      return refuse(viewing);
    }
    int64_t size = viewing->view->dims[axis];
    int64_t start = lists[STARTS][k] < 0 ? lists[STARTS][k] + size : lists[STARTS][k];
    int64_t last = step < 0 ? size - 1 : size;
    start = start < 0 ? 0 : start > last ? last : start;
    KERNEL_TRY(cut(viewing, (int32_t)axis, start, step));
  }
  for (int32_t d = 0; d < rank; d++) {
    if (viewing->view->dims[d] != viewing->result->dims[d]) {
      return refuse(viewing);
    }
  }
  return CLEAVE_OK;
}

/* The part of a Split that the result is. */
static cleave_status_t view_split(const viewing_t *viewing) {
  int64_t axis = cleave_view_int(viewing->node, "axis", 0);
  int64_t start = 0;
  axis = axis < 0 ? axis + viewing->view->rank : axis;
  if (axis < 0 || axis >= viewing->view->rank || viewing->result->rank != viewing->view->rank) {
    return refuse(viewing);
  }
  for (uint32_t k = 0; k < viewing->node->output_count; k++) {
    const cleave_value_view_t *part = cleave_view_output(viewing->lowering->region, viewing->node, k);
    if (part == NULL || part->tensor.rank <= axis) {
      return refuse(viewing); /* how much comes before is not known */
    }
    if (&part->tensor == viewing->result) {
      return cut(viewing, (int32_t)axis, start, 1);
    }
    start += part->tensor.dims[axis];
  }
  return refuse(viewing);
}

static const struct {
  const char *op;
  cleave_status_t (*view)(const viewing_t *viewing);
} views[] = {
    {"Expand", view_expand},       {"Flatten", view_reshape},   {"Reshape", view_reshape},
    {"Slice", view_slice},         {"Split", view_split},       {"Squeeze", view_reshape},
    {"Transpose", view_transpose}, {"Unsqueeze", view_reshape},
};

enum { VIEW_COUNT = sizeof views / sizeof views[0] };

static size_t find_view(node_t *node) {
  size_t k = 0;
  while (k < VIEW_COUNT && !cleave_view_text_equal(views[k].op, node->op)) {
    k++;
  }
  return k;
}

bool kernel_lower_is_view(node_t *node) {
  return find_view(node) < VIEW_COUNT || kernel_lower_is_join(node);
}

bool kernel_lower_is_join(node_t *node) {
  return cleave_view_text_equal("Concat", node->op);
}

cleave_status_t kernel_lower_view(lowering_t *lowering, uint32_t value, uint32_t *out_source,
                                  kernel_view_t *out_view) {
  uint32_t chain[KERNEL_MAX_TENSORS]; /* values from the result to the source */
  uint32_t count = 0;
  while (lowering->viewers[value] != CLEAVE_INDEX_NONE) {
    node_t *node = &lowering->region->nodes[lowering->viewers[value]];
    if (kernel_lower_is_join(node)) {
      return kernel_lower_refuse(node, "a view of it is no load", lowering->message);
    }
    if (count == KERNEL_MAX_TENSORS || cleave_view_input(lowering->region, node, 0) == NULL) {
      return kernel_lower_refuse(node, "its operand is missing, or a view of too many views",
                                 lowering->message);
    }
    chain[count++] = value;
    value = node->inputs[0];
  }
  uint32_t producer = lowering->region->values[value].producer;
  if (count > 0 && producer != CLEAVE_INDEX_NONE && lowering->inside[producer]) {
    return kernel_lower_refuse(&lowering->region->nodes[lowering->viewers[chain[count - 1]]],
                               "its operand is computed inside", lowering->message);
  }
  *out_source = value;
  kernel_view_whole(&lowering->region->values[value].tensor, out_view);
  out_view->is_part = count > 0;
  while (count-- > 0) {
    node_t *node = &lowering->region->nodes[lowering->viewers[chain[count]]];
    const viewing_t viewing = {.lowering = lowering,
                               .node = node,
                               .result = &lowering->region->values[chain[count]].tensor,
                               .view = out_view};
    KERNEL_TRY(views[find_view(node)].view(&viewing));
  }
  return CLEAVE_OK;
}
