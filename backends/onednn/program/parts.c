// SPDX-License-Identifier: Apache-2.0
// A region is cut if every value that is no constant has the rows of the batch as dimension 0, and every
// operator keeps them apart. How many rows a part has is the divisor of the batch for which an estimate is
// the least: of the time for what goes through memory, which are values larger than the cache, and the
// weights once per part, and for what a step costs however small it is.
#include "onednn/program/parts.h"

#include <string.h>
#include <unistd.h>

#include "onednn/analysis/analysis.h"
#include "onednn/analysis/pointwise.h"
#include "onednn/units/windows.h"

typedef struct batch {
  const cleave_region_view_t *region;
  int64_t rows;
  bool *is_fixed; /* per value: a constant, or made of constants alone */
  bool *passes;   /* per value: kernels hand it on, or it comes in or goes out */
} batch_t;

/* ---- operators that keep rows apart ---- */

typedef bool (*apart_fn_t)(const batch_t *batch, const cleave_node_view_t *node);

static const cleave_tensor_view_t *tensor(const batch_t *batch, uint32_t value) {
  return &batch->region->values[value].tensor;
}

static bool is_fixed(const batch_t *batch, const cleave_node_view_t *node, uint32_t k) {
  return k >= node->input_count || node->inputs[k] == CLEAVE_INDEX_NONE || batch->is_fixed[node->inputs[k]];
}

/* The first input has rows, and no other. */
static bool reads_first(const batch_t *batch, const cleave_node_view_t *node) {
  for (uint32_t k = 1; k < node->input_count; k++) {
    if (!is_fixed(batch, node, k)) {
      return false;
    }
  }
  return !is_fixed(batch, node, 0);
}

/* Operands are broadcast: those with rows have them where the result has, others are the same for all rows.
 */
static bool pointwise(const batch_t *batch, const cleave_node_view_t *node) {
  int32_t rank = tensor(batch, node->outputs[0])->rank;
  for (uint32_t k = 0; k < node->input_count; k++) {
    if (node->inputs[k] != CLEAVE_INDEX_NONE) {
      const cleave_tensor_view_t *operand = tensor(batch, node->inputs[k]);
      bool is_same = operand->rank < rank || operand->dims[0] == 1;
      if (is_fixed(batch, node, k) ? !is_same : operand->rank != rank) {
        return false;
      }
    }
  }
  return true;
}

static bool along(const batch_t *batch, const cleave_node_view_t *node, int64_t fallback) {
  int32_t rank = tensor(batch, node->inputs[0])->rank;
  return onednn_axis(cleave_view_int(node, "axis", fallback), rank) > 0;
}

static bool along_last(const batch_t *batch, const cleave_node_view_t *node) {
  return reads_first(batch, node) && along(batch, node, -1);
}

static bool split(const batch_t *batch, const cleave_node_view_t *node) {
  return reads_first(batch, node) && along(batch, node, 0);
}

/* Poolings that say where their maxima are count through the whole batch. */
static bool max_pool(const batch_t *batch, const cleave_node_view_t *node) {
  return reads_first(batch, node) && (node->output_count < 2 || node->outputs[1] == CLEAVE_INDEX_NONE);
}

static bool norm(const batch_t *batch, const cleave_node_view_t *node) {
  return reads_first(batch, node) && cleave_view_int(node, "training_mode", 0) == 0;
}

/* One scale for all: others might belong to rows. */
static bool quantize(const batch_t *batch, const cleave_node_view_t *node) {
  const cleave_value_view_t *scale = cleave_view_input(batch->region, node, 1);
  return reads_first(batch, node) && scale != NULL && cleave_view_element_count(&scale->tensor) == 1;
}

static bool concat(const batch_t *batch, const cleave_node_view_t *node) {
  bool is_apart = along(batch, node, 0);
  for (uint32_t k = 0; k < node->input_count; k++) {
    is_apart = is_apart && !is_fixed(batch, node, k);
  }
  return is_apart;
}

static bool reduction(const batch_t *batch, const cleave_node_view_t *node) {
  bool axes[CLEAVE_MAX_RANK] = {false};
  return reads_first(batch, node) &&
         onednn_reduced_axes(batch->region, node, tensor(batch, node->inputs[0])->rank, axes) && !axes[0];
}

static bool transpose(const batch_t *batch, const cleave_node_view_t *node) {
  int32_t order[CLEAVE_MAX_RANK];
  return onednn_transpose_order(node, tensor(batch, node->inputs[0])->rank, order) && order[0] == 0;
}

static bool slice(const batch_t *batch, const cleave_node_view_t *node) {
  onednn_shape_t shape = onednn_shape_of(&batch->region->values[node->inputs[0]]);
  onednn_slice_t parts;
  return reads_first(batch, node) && onednn_slice_of(batch->region, node, &shape, &parts) &&
         parts.starts[0] == 0 && parts.steps[0] == 1;
}

static bool pad(const batch_t *batch, const cleave_node_view_t *node) {
  int64_t pads[2 * CLEAVE_MAX_RANK];
  int32_t rank = tensor(batch, node->inputs[0])->rank;
  return reads_first(batch, node) && onednn_pads_of(batch->region, node, rank, pads) && pads[0] == 0 &&
         pads[rank] == 0;
}

/* By scales: sizes would name those of the whole batch. */
static bool resize(const batch_t *batch, const cleave_node_view_t *node) {
  return reads_first(batch, node) && (node->input_count < 4 || node->inputs[3] == CLEAVE_INDEX_NONE);
}

static bool matmul(const batch_t *batch, const cleave_node_view_t *node) {
  const cleave_value_view_t *b = cleave_view_input(batch->region, node, 1);
  if (is_fixed(batch, node, 0) || b == NULL) {
    return false;
  }
  int32_t left = tensor(batch, node->inputs[0])->rank;
  return is_fixed(batch, node, 1) ? left >= 2 && b->tensor.rank <= 2 : left >= 3 && left == b->tensor.rank;
}

static bool gemm(const batch_t *batch, const cleave_node_view_t *node) {
  const cleave_value_view_t *bias = cleave_view_input(batch->region, node, 2);
  return reads_first(batch, node) && cleave_view_int(node, "transA", 0) == 0 &&
         (bias == NULL || bias->tensor.rank < 2 || bias->tensor.dims[0] == 1);
}

/* Views leave elements in their order, and rows are as long before as behind. */
static const struct {
  const char *op;
  apart_fn_t keeps_apart;
} operators[] = {
    {"AveragePool", reads_first},
    {"BatchNormalization", norm},
    {"Concat", concat},
    {"Conv", reads_first},
    {"ConvTranspose", reads_first},
    {"DequantizeLinear", quantize},
    {"Flatten", reads_first},
    {"Gemm", gemm},
    {"GlobalAveragePool", reads_first},
    {"GlobalMaxPool", reads_first},
    {"LRN", reads_first},
    {"LayerNormalization", along_last},
    {"LogSoftmax", along_last},
    {"MatMul", matmul},
    {"MaxPool", max_pool},
    {"PRelu", pointwise},
    {"Pad", pad},
    {"QuantizeLinear", quantize},
    {"RMSNormalization", along_last},
    {"ReduceL1", reduction},
    {"ReduceL2", reduction},
    {"ReduceMax", reduction},
    {"ReduceMean", reduction},
    {"ReduceMin", reduction},
    {"ReduceProd", reduction},
    {"ReduceSum", reduction},
    {"ReduceSumSquare", reduction},
    {"Reshape", reads_first},
    {"Resize", resize},
    {"Slice", slice},
    {"Softmax", along_last},
    {"Split", split},
    {"Squeeze", reads_first},
    {"Transpose", transpose},
    {"Unsqueeze", reads_first},
};

static bool keeps_apart(const batch_t *batch, const cleave_node_view_t *node) {
  for (size_t k = 0; k < sizeof(operators) / sizeof(operators[0]); k++) {
    if (onednn_node_is(node, operators[k].op)) {
      return operators[k].keeps_apart(batch, node);
    }
  }
  return onednn_pointwise_known(node) && pointwise(batch, node);
}

/* ---- values ---- */

/* Does a value that is no constant have the rows? */
static bool has_rows(batch_t *batch, uint32_t value) {
  const cleave_tensor_view_t *view = tensor(batch, value);
  if (view->rank < 1 || cleave_view_element_count(view) <= 0) {
    return false;
  }
  batch->rows = batch->rows == 0 ? view->dims[0] : batch->rows;
  return view->dims[0] == batch->rows;
}

static bool is_made_of_constants(const batch_t *batch, const cleave_node_view_t *node) {
  bool all = true;
  for (uint32_t k = 0; k < node->input_count; k++) {
    all = all && is_fixed(batch, node, k);
  }
  return all;
}

static uint32_t fusion_of(const batch_t *batch, uint32_t value) {
  uint32_t producer = batch->region->values[value].producer;
  return producer != CLEAVE_INDEX_NONE ? batch->region->nodes[producer].fusion : CLEAVE_INDEX_NONE;
}

/* Nodes come in an order in which each finds its inputs made. */
static bool can_be_cut(batch_t *batch) {
  const cleave_region_view_t *region = batch->region;
  bool can = region->input_count > 0;
  for (uint32_t v = 0; v < region->value_count; v++) {
    batch->is_fixed[v] = onednn_is_constant(&region->values[v]);
  }
  for (uint32_t k = 0; k < region->input_count && can; k++) {
    can = has_rows(batch, region->inputs[k]);
    batch->passes[region->inputs[k]] = true;
  }
  for (uint32_t n = 0; n < region->node_count && can; n++) {
    const cleave_node_view_t *node = &region->nodes[n];
    bool is_constant = is_made_of_constants(batch, node);
    for (uint32_t k = 0; k < node->output_count && can; k++) {
      if (node->outputs[k] != CLEAVE_INDEX_NONE) {
        batch->is_fixed[node->outputs[k]] = is_constant;
        can = is_constant || has_rows(batch, node->outputs[k]);
      }
    }
    for (uint32_t k = 0; k < node->input_count && can; k++) {
      if (!is_fixed(batch, node, k)) {
        bool is_inside =
            node->fusion != CLEAVE_INDEX_NONE && fusion_of(batch, node->inputs[k]) == node->fusion;
        batch->passes[node->inputs[k]] |= !is_inside;
      }
    }
    can = can && (is_constant || (node->outputs[0] != CLEAVE_INDEX_NONE && keeps_apart(batch, node)));
  }
  for (uint32_t k = 0; k < region->output_count && can; k++) {
    can = !batch->is_fixed[region->outputs[k]];
    batch->passes[region->outputs[k]] = true;
  }
  return can;
}

/* ---- how many rows ---- */

/* What memory and a thread do in a nanosecond, what a step costs that does nothing, and the share of a run
 * that has to be saved on one thread and on several, which wait for each other at every step. */
static const double BYTES_PER_NS = 20.0;
static const double FLOPS_PER_NS = 100.0;
static const double STEP_NS = 1000.0;
static const double WORTH = 0.05;
static const double WORTH_SHARED = 0.08;

/* The least and the most of the third cache that values may fill; others use it as well. Rows of a part: the
 * least of one thread, the least for each of several, which wait for each other at every step, and the most.
 */
enum { LEAST_CACHE = 4 << 20, MOST_CACHE = 16 << 20, LEAST_ROWS = 2, LEAST_SHARED = 4, MOST_ROWS = 4096 };

static double cache_bytes(void) {
#ifdef _SC_LEVEL3_CACHE_SIZE
  double quarter = (double)sysconf(_SC_LEVEL3_CACHE_SIZE) / 4;
#else
  double quarter = 0;
#endif
  return quarter < LEAST_CACHE ? LEAST_CACHE : (quarter > MOST_CACHE ? MOST_CACHE : quarter);
}

static double bytes_of(const cleave_tensor_view_t *view) {
  return (double)cleave_view_element_count(view) * (double)cleave_dtype_size(view->dtype);
}

static double weight_bytes(const batch_t *batch) {
  double bytes = 0;
  for (uint32_t v = 0; v < batch->region->value_count; v++) {
    bytes += onednn_is_constant(&batch->region->values[v]) ? bytes_of(tensor(batch, v)) : 0;
  }
  return bytes;
}

/* Nanoseconds per row for memory and steps, with so many rows at a time. A value is written and read while
 * another one of its size is there, too. Weights come once per part, and drive out values. */
static double time_around(const batch_t *batch, double weights, int64_t rows) {
  double cache = cache_bytes();
  double moved = 2 * weights / (double)rows;
  for (uint32_t v = 0; v < batch->region->value_count; v++) {
    if (batch->passes[v]) {
      double row = bytes_of(tensor(batch, v)) / (double)batch->rows;
      moved += 2 * row * (double)rows > cache ? 2 * row : 0;
    }
  }
  return moved / BYTES_PER_NS + STEP_NS * batch->region->node_count / (double)rows;
}

/* Nanoseconds of computing a row on all threads; 0: not known. */
static double time_within(const batch_t *batch, int32_t threads) {
  const cleave_region_view_t *region = batch->region;
  double flops = 0;
  if (region->size < offsetof(cleave_region_view_t, flops) + sizeof(region->flops) || region->flops == NULL) {
    return 0;
  }
  for (uint32_t n = 0; n < region->node_count; n++) {
    flops += region->flops[n];
  }
  return flops / (double)batch->rows / (FLOPS_PER_NS * threads);
}

static int64_t best_rows(const batch_t *batch, int32_t threads) {
  double weights = weight_bytes(batch);
  double whole = time_around(batch, weights, batch->rows);
  double least = whole;
  int64_t best = batch->rows;
  int64_t first = threads == 1 ? LEAST_ROWS : LEAST_SHARED * (int64_t)threads;
  for (int64_t rows = first; rows < batch->rows && rows <= MOST_ROWS; rows++) {
    double time = batch->rows % rows == 0 ? time_around(batch, weights, rows) : whole;
    if (time < least) {
      least = time;
      best = rows;
    }
  }
  double within = time_within(batch, threads);
  double worth = threads == 1 ? WORTH : WORTH_SHARED;
  return within > 0 && whole - least > worth * (within + whole) ? best : batch->rows;
}

/* ---- the region of a part ---- */

static const cleave_region_view_t *part_of(const batch_t *batch, int64_t rows, kernel_arena_t *arena) {
  const cleave_region_view_t *region = batch->region;
  cleave_region_view_t *part = kernel_arena_allocate(arena, 1, sizeof(*part));
  cleave_value_view_t *values = kernel_arena_allocate(arena, region->value_count, sizeof(*values));
  if (part == NULL || values == NULL) {
    return NULL;
  }
  size_t size = region->size < sizeof(*part) ? region->size : sizeof(*part);
  memcpy(part, region, size);
  part->size = size;
  memcpy(values, region->values, region->value_count * sizeof(*values));
  for (uint32_t v = 0; v < region->value_count; v++) {
    if (batch->is_fixed[v] || values[v].tensor.rank < 1) {
      continue;
    }
    size_t rank = (size_t)values[v].tensor.rank;
    int64_t *dims = kernel_arena_allocate(arena, rank, sizeof(*dims));
    if (dims == NULL) {
      return NULL;
    }
    memcpy(dims, values[v].tensor.dims, rank * sizeof(*dims));
    dims[0] = rows;
    values[v].tensor.dims = dims;
  }
  part->values = values;
  return part;
}

/* The attribute `rows` of the region: so many at a time; 0: by the estimate; -1: all. */
static int64_t wanted_rows(const cleave_region_view_t *region) {
  const cleave_attribute_view_t *rows = cleave_view_region_attribute(region, "rows");
  return rows != NULL && rows->kind == CLEAVE_ATTRIBUTE_INT ? rows->i : 0;
}

cleave_status_t onednn_parts_of(const cleave_region_view_t *region, int32_t threads, kernel_arena_t *arena,
                                onednn_parts_t *out, cleave_message_t *message) {
  batch_t batch = {.region = region,
                   .is_fixed = kernel_arena_allocate(arena, region->value_count, sizeof(bool)),
                   .passes = kernel_arena_allocate(arena, region->value_count, sizeof(bool))};
  int64_t rows = wanted_rows(region);
  *out = (onednn_parts_t){.region = region, .count = 1};
  ONEDNN_TRY(onednn_check_ids(region, message));
  if (batch.is_fixed == NULL || batch.passes == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while analysing a region");
  }
  if (rows < 0 || !can_be_cut(&batch)) {
    return CLEAVE_OK;
  }
  rows = rows == 0 ? best_rows(&batch, threads) : rows;
  if (rows < batch.rows && batch.rows % rows == 0) {
    out->region = part_of(&batch, rows, arena);
    out->count = batch.rows / rows;
  }
  return out->region != NULL
             ? CLEAVE_OK
             : kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while analysing a region");
}
