// SPDX-License-Identifier: Apache-2.0
// Updates at places that a tensor names: the data is copied, then they go over it. As on `cpu` the last of
// several updates for one place holds, and those that are combined meet in order; so that results are the
// same in every run.
#include <stdio.h>
#include <string.h>

#include "cuda/emit/emit.h"
#include "kernels/convert.h"
#include "kernels/cuda/expression.h"

enum { BLOCK = 256, MAX_DEFINES = 512, MAX_IN_ORDER = 256 /* updates of a thread */ };

typedef enum scatter_mode {
  SCATTER_CLAIM,
  SCATTER_PUT,
  SCATTER_COMBINE,
  SCATTER_PLACES,
  SCATTER_RUNS
} scatter_mode_t;

/* The kernels of a node share this. */
typedef struct scatter {
  const char *shape;    /* "#define RANK 3\n" */
  const char *combined; /* expression of x, which is there, and u; NULL: u replaces x */
  uint32_t from;        /* slots: the updates, and the data that they go over, CUDA_NO_SLOT: zeros */
  uint32_t data;
  int64_t size;    /* bytes of an element */
  int64_t places;  /* that updates are counted for */
  int64_t updates; /* each a block of `inner` elements */
  int64_t inner;
  int64_t lines; /* of updates that may meet, `length` of them */
  int64_t length;
  int64_t line_inner;
  bool is_wide;
  uint32_t number_count; /* behind those three */
  int64_t numbers[CUDA_MAX_NUMBERS];
} scatter_t;

/* The expression of a reduction; NULL if it has none. Sums of 16 bits are rounded once each, as on `cpu`. */
static const char *combination(const char *reduction, cleave_dtype_t dtype) {
  static const char *const names[] = {"add", "mul", "max", "min"};
  static const char *const floats[] = {"narrow((number)widen(x) + (number)widen(u))",
                                       "narrow((number)widen(x) * (number)widen(u))",
                                       "widen(x) > widen(u) || widen(x) != widen(x) ? x : u",
                                       "widen(x) < widen(u) || widen(x) != widen(x) ? x : u"};
  static const char *const integers[] = {"(element)((u64)x + (u64)u)", "(element)((u64)x * (u64)u)",
                                         "x > u ? x : u", "x < u ? x : u"};
  static const char *const bools[] = {"x | u", "x & u", "x | u", "x & u"};
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
    if (strcmp(names[k], reduction) == 0) {
      return cpu_dtype_is_float(dtype) ? floats[k] : dtype == CLEAVE_DTYPE_BOOL ? bools[k] : integers[k];
    }
  }
  return NULL;
}

/* `first` and `second`: slots of what kernels of the node make for each other, as the mode has them. */
static cleave_status_t emit_mode(cuda_plan_t *plan, const cleave_node_view_t *node, const scatter_t *scatter,
                                 scatter_mode_t mode, uint32_t first, uint32_t second) {
  char defines[MAX_DEFINES];
  char types[256];
  bool combines = mode == SCATTER_COMBINE || mode == SCATTER_RUNS;
  const uint32_t all[] = {mode == SCATTER_RUNS ? CUDA_NO_SLOT : node->inputs[1], first, second,
                          mode == SCATTER_CLAIM || mode == SCATTER_PLACES ? CUDA_NO_SLOT : scatter->from,
                          mode == SCATTER_CLAIM || mode == SCATTER_PLACES ? CUDA_NO_SLOT : node->outputs[0]};
  cuda_kernel_call_t call = {
      .text = "scatter", .label = node->op, .defines = defines, .is_wide = scatter->is_wide, .block = BLOCK};
  if (combines) {
    (void)cuda_text_defines(cuda_output(plan, node, 0)->dtype, types, sizeof types);
  }
  (void)snprintf(defines, sizeof defines, "%stypedef %s place;\n%s#define MODE %d\n#define COMBINED %s\n",
                 combines ? types : cuda_word_type(scatter->size), cuda_place_type(cuda_input(plan, node, 1)),
                 scatter->shape, (int)mode, combines ? scatter->combined : "u");
  for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
    if (all[k] != CUDA_NO_SLOT) {
      call.pointers[call.pointer_count++] = (cuda_pointer_t){all[k], 0};
    }
  }
  bool has_blocks = mode == SCATTER_PUT || mode == SCATTER_RUNS;
  call.threads =
      mode == SCATTER_COMBINE ? scatter->lines : scatter->updates * (has_blocks ? scatter->inner : 1);
  call.numbers[0] = call.threads;
  call.numbers[1] = mode == SCATTER_COMBINE ? scatter->line_inner : scatter->inner;
  call.numbers[2] = mode == SCATTER_RUNS ? scatter->updates : scatter->length;
  memcpy(call.numbers + 3, scatter->numbers, scatter->number_count * sizeof *scatter->numbers);
  call.number_count = 3 + scatter->number_count;
  return cuda_plan_kernel(plan, &call);
}

/* Updates that are combined, run by run of those of one place. */
static cleave_status_t emit_runs(cuda_plan_t *plan, const cleave_node_view_t *node,
                                 const scatter_t *scatter) {
  int64_t bytes = scatter->updates * (scatter->is_wide ? 8 : 4);
  cuda_order_t order = {.label = node->op,
                        .dtype = scatter->is_wide ? CLEAVE_DTYPE_I64 : CLEAVE_DTYPE_I32,
                        .rows = 1,
                        .inner = 1,
                        .length = scatter->updates,
                        .keep = scatter->updates};
  if (scatter->updates >= UINT32_MAX) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SIZE, "2^32 updates or more would be combined in order");
  }
  CUDA_TRY(cuda_plan_scratch(plan, bytes, &order.from));
  CUDA_TRY(cuda_plan_scratch(plan, bytes, &order.values));
  CUDA_TRY(cuda_plan_scratch(plan, scatter->updates * 8, &order.indices));
  CUDA_TRY(emit_mode(plan, node, scatter, SCATTER_PLACES, order.from, CUDA_NO_SLOT));
  CUDA_TRY(cuda_emit_order(plan, &order));
  return emit_mode(plan, node, scatter, SCATTER_RUNS, order.values, order.indices);
}

static cleave_status_t emit_scatter(cuda_plan_t *plan, const cleave_node_view_t *node,
                                    const scatter_t *scatter) {
  uint32_t owners = 0;
  const cuda_pointer_t to = {node->outputs[0], 0};
  int64_t all = plan->slots[to.slot].bytes;
  CUDA_TRY(scatter->data == CUDA_NO_SLOT ? cuda_emit_zeros(plan, node->op, to, all)
                                         : cuda_plan_copy(plan, (cuda_pointer_t){scatter->data, 0}, to, all));
  if (scatter->updates * scatter->inner == 0 || scatter->places == 0) {
    return CLEAVE_OK;
  }
  if (scatter->combined != NULL) {
    return scatter->length > MAX_IN_ORDER
               ? emit_runs(plan, node, scatter)
               : emit_mode(plan, node, scatter, SCATTER_COMBINE, CUDA_NO_SLOT, CUDA_NO_SLOT);
  }
  int64_t bytes = scatter->places * (scatter->is_wide ? 8 : 4);
  CUDA_TRY(cuda_plan_scratch(plan, bytes, &owners));
  CUDA_TRY(cuda_emit_zeros(plan, node->op, (cuda_pointer_t){owners, 0}, bytes));
  CUDA_TRY(emit_mode(plan, node, scatter, SCATTER_CLAIM, owners, CUDA_NO_SLOT));
  return emit_mode(plan, node, scatter, SCATTER_PUT, owners, CUDA_NO_SLOT);
}

/* Checks and sets what both operators have. */
static cleave_status_t begin_scatter(cuda_plan_t *plan, const cleave_node_view_t *node,
                                     scatter_t *out_scatter) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const char *reduction = cleave_view_string(node, "reduction", "none");
  *out_scatter = (scatter_t){.combined = combination(reduction, x->dtype),
                             .size = (int64_t)cleave_dtype_size(x->dtype),
                             .from = node->inputs[2],
                             .data = node->inputs[0]};
  if (out_scatter->combined == NULL && strcmp(reduction, "none") != 0) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_ATTRIBUTE, "its reduction is unknown");
  }
  if (cuda_place_type(cuda_input(plan, node, 1)) == NULL || cuda_input(plan, node, 2)->dtype != x->dtype) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE,
                            "its indices are neither int32 nor int64, or its updates have another dtype");
  }
  out_scatter->is_wide = cuda_is_wide(cleave_view_element_count(x)) ||
                         cuda_is_wide(cleave_view_element_count(cuda_input(plan, node, 1))) ||
                         cuda_is_wide(cleave_view_element_count(cuda_input(plan, node, 2)));
  return CLEAVE_OK;
}

cleave_status_t cuda_emit_scatter_elements(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *at = cuda_input(plan, node, 1);
  const cleave_tensor_view_t *updates = cuda_input(plan, node, 2);
  int64_t axis = cleave_view_int(node, "axis", 0);
  int64_t strides[CLEAVE_MAX_RANK];
  char shape[32];
  scatter_t scatter;
  CUDA_TRY(begin_scatter(plan, node, &scatter));
  axis = axis < 0 ? axis + x->rank : axis;
  if (axis < 0 || axis >= x->rank || at->rank != x->rank || updates->rank != x->rank) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its axis, indices or updates do not fit the data");
  }
  (void)snprintf(shape, sizeof shape, "#define RANK %d\n", (int)x->rank);
  cuda_dense_strides(x->rank, x->dims, strides);
  for (int32_t d = 0; d < x->rank; d++) {
    if (at->dims[d] != updates->dims[d] || (d != axis && at->dims[d] > x->dims[d])) {
      return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its indices do not fit the data and the updates");
    }
    scatter.numbers[d] = at->dims[d];
    scatter.numbers[x->rank + d] = d == axis ? 0 : strides[d];
  }
  scatter.numbers[2 * x->rank] = x->dims[axis];
  scatter.numbers[2 * x->rank + 1] = strides[axis];
  scatter.number_count = (uint32_t)(2 * x->rank + 2);
  scatter.shape = shape;
  scatter.places = cleave_view_element_count(x);
  scatter.updates = cleave_view_element_count(at);
  scatter.inner = 1;
  scatter.length = at->dims[axis];
  scatter.lines = scatter.length > 0 ? scatter.updates / scatter.length : 0;
  scatter.line_inner = cuda_product_of(at->dims + axis + 1, x->rank - (int32_t)axis - 1);
  return emit_scatter(plan, node, &scatter);
}

cleave_status_t cuda_emit_scatter_nd(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *at = cuda_input(plan, node, 1);
  int64_t depth = at->rank < 1 ? 0 : at->dims[at->rank - 1];
  char shape[32];
  scatter_t scatter;
  CUDA_TRY(begin_scatter(plan, node, &scatter));
  if (depth < 1 || depth > x->rank) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its tuples do not fit the data");
  }
  scatter.inner = cuda_product_of(x->dims + depth, x->rank - (int32_t)depth);
  scatter.updates = cuda_product_of(at->dims, at->rank - 1);
  if (cleave_view_element_count(cuda_input(plan, node, 2)) != scatter.updates * scatter.inner) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its updates do not fit its tuples");
  }
  (void)snprintf(shape, sizeof shape, "#define DEPTH %d\n", (int)depth);
  if (scatter.combined == NULL) {
    scatter.size = cuda_widen_block(scatter.size, &scatter.inner);
  }
  memcpy(scatter.numbers, x->dims, (size_t)depth * sizeof *scatter.numbers);
  cuda_dense_strides((int32_t)depth, x->dims, scatter.numbers + depth);
  scatter.number_count = (uint32_t)(2 * depth);
  scatter.shape = shape;
  scatter.places = cuda_product_of(x->dims, (int32_t)depth);
  scatter.length = scatter.updates;
  scatter.lines = scatter.inner;
  scatter.line_inner = scatter.inner;
  return emit_scatter(plan, node, &scatter);
}

/* The tensor that the indices count in: what MaxPool read, which may be smaller than the result. */
cleave_status_t cuda_emit_max_unpool(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *at = cuda_input(plan, node, 1);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  uint32_t counts[3] = {0, 0, 0};
  const int64_t *sizes = cleave_view_ints(node, "kernel_shape", &counts[0]);
  const int64_t *strides = cleave_view_ints(node, "strides", &counts[1]);
  const int64_t *pads = cleave_view_ints(node, "pads", &counts[2]);
  uint32_t axes = x->rank < 3 ? 0 : (uint32_t)x->rank - 2;
  char shape[48];
  scatter_t scatter = {.shape = shape,
                       .from = node->inputs[0],
                       .data = CUDA_NO_SLOT,
                       .size = (int64_t)cleave_dtype_size(x->dtype),
                       .inner = 1,
                       .number_count = (uint32_t)(3 * x->rank)};
  if (axes == 0 || counts[0] != axes || (counts[1] != 0 && counts[1] != axes) ||
      (counts[2] != 0 && counts[2] != 2 * axes) || y->rank != x->rank || at->dtype != CLEAVE_DTYPE_I64 ||
      cleave_view_element_count(at) != cleave_view_element_count(x)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its indices or attributes do not fit the data");
  }
  (void)snprintf(shape, sizeof shape, "#define FLAT\n#define RANK %d\n", (int)x->rank);
  memcpy(scatter.numbers, x->dims, 2 * sizeof *x->dims);
  for (uint32_t d = 0; d < axes; d++) {
    int64_t stride = counts[1] > 0 ? strides[d] : 1;
    int64_t padding = counts[2] > 0 ? pads[d] + pads[axes + d] : 0;
    scatter.numbers[2 + d] = (x->dims[2 + d] - 1) * stride - padding + sizes[d];
    if (scatter.numbers[2 + d] < 1 && cleave_view_element_count(x) > 0) {
      return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its pads are larger than the tensor");
    }
  }
  cuda_dense_strides(y->rank, y->dims, scatter.numbers + x->rank);
  memcpy(scatter.numbers + 2 * x->rank, y->dims, (size_t)x->rank * sizeof *y->dims);
  scatter.places = cleave_view_element_count(y);
  scatter.updates = cleave_view_element_count(x);
  scatter.is_wide = cuda_is_wide(scatter.places) || cuda_is_wide(scatter.updates);
  return emit_scatter(plan, node, &scatter);
}
