// SPDX-License-Identifier: Apache-2.0
// What a unit computes. One node gives the primitive (a product, a pooling, ...; none in a pointwise unit);
// what feeds it may fold into it (a Pad, scalar factors of a product); everything after it must be a chain of
// pointwise steps. Nothing of a fusion may remain over, and nothing inside it may be used outside.
#include "onednn/analysis/recognise.h"

#include <string.h>

#include "kernels/lower/lower.h"
#include "onednn/analysis/operators.h"
#include "onednn/analysis/pointwise.h"
#include "onednn/analysis/quantization.h"
#include "onednn/analysis/recognise_shuffle.h"
#include "onednn/library/types.h"
#include "onednn/units/windows.h"

static const cleave_node_view_t *unit_node(const onednn_unit_t *unit, uint32_t k) {
  return &unit->analysis->region->nodes[unit->nodes[k]];
}

static void reset(onednn_unit_t *unit, onednn_kernel_t *kernel) {
  memset(kernel, 0, sizeof(*kernel));
  kernel->kind = ONEDNN_POINTWISE;
  kernel->node = CLEAVE_INDEX_NONE;
  kernel->fusion = unit->fusion;
  kernel->source = CLEAVE_INDEX_NONE;
  kernel->weights = CLEAVE_INDEX_NONE;
  kernel->output = CLEAVE_INDEX_NONE;
  kernel->pad_node = CLEAVE_INDEX_NONE;
  kernel->input_scale = 1;
  kernel->scale = CLEAVE_INDEX_NONE;
  kernel->shift = CLEAVE_INDEX_NONE;
  for (uint32_t k = 0; k < unit->count; k++) {
    unit->taken[k] = onednn_unit_borrows(unit, unit_node(unit, k));
  }
}

// May slot `slot` of the node (outputs follow inputs) hold 8-bit integers?
static bool takes_bytes(const cleave_node_view_t *node, uint32_t slot) {
  if (onednn_node_is(node, "DequantizeLinear")) {
    return slot == 0;
  }
  if (onednn_node_is(node, "QuantizeLinear")) {
    return slot == node->input_count;
  }
  if (onednn_unpacks(node)) {
    return true;
  }
  const onednn_operator_t *entry = onednn_operator_find(node->op);
  return (slot == 0 || slot >= node->input_count || onednn_node_is(node, "Concat")) && entry != NULL &&
         (entry->moves || onednn_node_is(node, "MaxPool"));
}

// Run-time operands and arithmetic constants must be float32, or 8-bit integers where those are only moved or
// turned into numbers; no known dimension may be empty.
static cleave_status_t check_values(const onednn_unit_t *unit) {
  const cleave_region_view_t *region = unit->analysis->region;
  for (uint32_t k = 0; k < unit->count; k++) {
    const cleave_node_view_t *node = unit_node(unit, k);
    if (node->domain[0] != '\0' && strcmp(node->domain, "cleave") != 0) {
      return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                         "oneDNN does not know operator %s of domain '%s'", node->op, node->domain);
    }
    for (uint32_t s = 0; s < node->input_count + node->output_count; s++) {
      bool input = s < node->input_count;
      uint32_t id = input ? node->inputs[s] : node->outputs[s - node->input_count];
      if (id == CLEAVE_INDEX_NONE) {
        continue;
      }
      const cleave_value_view_t *value = &region->values[id];
      cleave_dtype_t dtype = value->tensor.dtype;
      bool constant = onednn_is_constant(value);
      bool unused =
          !input && s > node->input_count && !value->is_output && onednn_use_count(unit->analysis, id) == 0;
      bool parameter = constant && s > 0 && dtype != CLEAVE_DTYPE_F16 && dtype != CLEAVE_DTYPE_BF16;
      bool byte = onednn_type_is_byte(onednn_type_of(dtype)) && takes_bytes(node, s);
      bool narrow = onednn_unit_borrows(unit, node) && onednn_is_short(value);
      if (dtype != CLEAVE_DTYPE_F32 && !byte && !narrow && !parameter && !unused) {
        return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                           "%s '%s': value '%s' is not float32", node->op, onednn_node_name(node),
                           value->name);
      }
      for (int32_t d = 0; !constant && d < value->tensor.rank; d++) {
        if (value->tensor.dims[d] == 0) {
          return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                             "%s '%s': value '%s' has no elements", node->op, onednn_node_name(node),
                             value->name);
        }
      }
    }
  }
  return CLEAVE_OK;
}

// Number of nodes of the unit, not taken yet, that read the value; `*last` is the last of them.
static uint32_t pending_readers(const onednn_unit_t *unit, uint32_t value, uint32_t *last) {
  uint32_t readers = 0;
  for (uint32_t k = 0; k < unit->count; k++) {
    const cleave_node_view_t *node = unit_node(unit, k);
    bool reads = false;
    for (uint32_t s = 0; !unit->taken[k] && s < node->input_count; s++) {
      reads = reads || node->inputs[s] == value;
    }
    if (reads) {
      readers++;
      *last = k;
    }
  }
  return readers;
}

static cleave_status_t check_interior(const onednn_unit_t *unit, uint32_t value) {
  if (!onednn_unit_leaks(unit, value)) {
    return CLEAVE_OK;
  }
  return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                     "value '%s' inside the fusion is also used outside",
                     unit->analysis->region->values[value].name);
}

// Has `result` a size, perhaps still unknown, if `shape` has one element?
static bool grows(const onednn_shape_t *shape, const onednn_shape_t *result) {
  for (int32_t d = 1; d <= shape->rank && d <= result->rank; d++) {
    if (shape->dims[shape->rank - d] == 1 && result->dims[result->rank - d] != 1) {
      return true;
    }
  }
  return false;
}

static cleave_status_t check_growth(const onednn_unit_t *unit, const onednn_kernel_t *kernel, uint32_t first,
                                    uint32_t current) {
  const cleave_region_view_t *region = unit->analysis->region;
  onednn_shape_t shape = onednn_shape_of(&region->values[current]);
  for (uint32_t p = first; kernel->kind != ONEDNN_POINTWISE && p < kernel->post_count; p++) {
    if (kernel->posts[p].kind != ONEDNN_POST_BINARY) {
      continue;
    }
    const cleave_node_view_t *node = &region->nodes[kernel->posts[p].node];
    onednn_shape_t operand = onednn_shape_of(&region->values[kernel->posts[p].operand]);
    onednn_shape_t result = onednn_shape_of(&region->values[node->outputs[0]]);
    if (!onednn_shape_fits(&operand, &shape) || grows(&shape, &result)) {
      return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                         "%s '%s': its operand '%s' would enlarge the result", node->op,
                         onednn_node_name(node), region->values[kernel->posts[p].operand].name);
    }
  }
  return CLEAVE_OK;
}

// Appends all that follows kernel->output to the posts, until every node of the unit is taken.
static cleave_status_t extend(onednn_unit_t *unit, onednn_kernel_t *kernel) {
  const cleave_region_view_t *region = unit->analysis->region;
  uint32_t left = 0;
  for (uint32_t k = 0; k < unit->count; k++) {
    left += unit->taken[k] ? 0 : 1;
  }
  while (left > 0) {
    uint32_t current = kernel->output;
    uint32_t next = 0;
    uint32_t readers = pending_readers(unit, current, &next);
    uint32_t posts = kernel->post_count;
    if (readers == 0) {
      uint32_t rest = 0;
      while (unit->taken[rest]) {
        rest++;
      }
      return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                         "%s '%s' does not follow from '%s': one primitive of oneDNN cannot compute both",
                         unit_node(unit, rest)->op, onednn_node_name(unit_node(unit, rest)),
                         region->values[current].name);
    }
    if (onednn_unit_makes(unit, current)) {
      ONEDNN_TRY(check_interior(unit, current));
    }
    if (readers > 1) {
      const cleave_node_view_t *reader = unit_node(unit, next);
      return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                         "%s '%s' is the second node of the fusion that reads '%s', and a chain of post-ops "
                         "reads it once; rules/canonical.lua finds activations that are spelled out",
                         reader->op, onednn_node_name(reader), region->values[current].name);
    }
    ONEDNN_TRY(onednn_pointwise_node(unit, unit->nodes[next], current, kernel));
    ONEDNN_TRY(check_growth(unit, kernel, posts, current));
    unit->taken[next] = true;
    kernel->output = region->nodes[unit->nodes[next]].outputs[0];
    left = 0;
    for (uint32_t k = 0; k < unit->count; k++) {
      left += unit->taken[k] ? 0 : 1;
    }
  }
  return CLEAVE_OK;
}

// Scalar factors of a product's input move behind the product.
static cleave_status_t fold_factors(onednn_unit_t *unit, onednn_kernel_t *kernel, uint32_t *input) {
  const cleave_region_view_t *region = unit->analysis->region;
  while (onednn_unit_makes(unit, *input)) {
    uint32_t entry = onednn_unit_find(unit, region->values[*input].producer);
    const cleave_node_view_t *node = unit_node(unit, entry);
    bool divides = onednn_node_is(node, "Div");
    double c = 0;
    uint32_t constant = 1;
    if ((!divides && !onednn_node_is(node, "Mul")) || node->input_count != 2 || unit->taken[entry]) {
      break;
    }
    if (!onednn_scalar(&region->values[node->inputs[1]], &c)) {
      constant = 0;
    }
    if (constant == 0 && (divides || !onednn_scalar(&region->values[node->inputs[0]], &c))) {
      break;
    }
    onednn_shape_t before = onednn_shape_of(&region->values[node->inputs[1 - constant]]);
    onednn_shape_t after = onednn_shape_of(&region->values[*input]);
    if (before.rank != after.rank || (divides && c == 0) || onednn_use_count(unit->analysis, *input) != 1) {
      break;
    }
    ONEDNN_TRY(check_interior(unit, *input));
    kernel->input_scale *= (float)(divides ? 1 / c : c);
    unit->taken[entry] = true;
    *input = node->inputs[1 - constant];
  }
  return CLEAVE_OK;
}

// Weights are read as they are stored.
static void take_cast(const onednn_unit_t *unit, onednn_kernel_t *kernel) {
  const cleave_region_view_t *region = unit->analysis->region;
  uint32_t producer = region->values[kernel->weights].producer;
  uint32_t entry = producer != CLEAVE_INDEX_NONE ? onednn_unit_find(unit, producer) : CLEAVE_INDEX_NONE;
  if (entry != CLEAVE_INDEX_NONE && onednn_casts_weights(region, unit_node(unit, entry))) {
    kernel->weights = unit_node(unit, entry)->inputs[0];
  }
}

// A Pad of zeros in front of a convolution or of an average that counts padding.
static cleave_status_t fold_pad(onednn_unit_t *unit, onednn_kernel_t *kernel) {
  const cleave_region_view_t *region = unit->analysis->region;
  const cleave_node_view_t *main = &region->nodes[kernel->node];
  if (!onednn_unit_makes(unit, kernel->source)) {
    return CLEAVE_OK;
  }
  uint32_t entry = onednn_unit_find(unit, region->values[kernel->source].producer);
  const cleave_node_view_t *node = unit_node(unit, entry);
  int64_t pads[2 * CLEAVE_MAX_RANK];
  int32_t rank = region->values[node->inputs[0]].tensor.rank;
  uint32_t count = 0;
  const int64_t *own = cleave_view_ints(main, "pads", &count);
  bool padded = false;
  for (uint32_t k = 0; k < count; k++) {
    padded = padded || own[k] != 0;
  }
  bool conv = onednn_node_is(main, "Conv");
  bool average = onednn_node_is(main, "AveragePool") &&
                 (!padded || cleave_view_int(main, "count_include_pad", 0) != 0) &&
                 cleave_view_int(main, "ceil_mode", 0) == 0;
  if (!onednn_node_is(node, "Pad") || !(conv || average) || rank < 3 || rank > 5 ||
      strcmp(cleave_view_string(main, "auto_pad", "NOTSET"), "NOTSET") != 0 ||
      !onednn_pads_of(region, node, rank, pads) || pads[0] != 0 || pads[1] != 0 || pads[rank] != 0 ||
      pads[rank + 1] != 0 || onednn_use_count(unit->analysis, kernel->source) != 1) {
    return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                       "%s '%s' cannot be computed inside %s '%s'", node->op, onednn_node_name(node),
                       main->op, onednn_node_name(main));
  }
  ONEDNN_TRY(check_interior(unit, kernel->source));
  unit->taken[entry] = true;
  kernel->pad_node = unit->nodes[entry];
  kernel->source = node->inputs[0];
  return CLEAVE_OK;
}

static cleave_status_t recognise_primitive(onednn_unit_t *unit, onednn_kernel_t *kernel, uint32_t entry,
                                           const onednn_operator_t *operator_entry) {
  const cleave_node_view_t *node = unit_node(unit, entry);
  kernel->kind = operator_entry->kind;
  kernel->node = unit->nodes[entry];
  kernel->source = node->inputs[0];
  kernel->output = node->outputs[0];
  for (uint32_t s = 1; s < node->input_count && kernel->kind <= ONEDNN_PRODUCT; s++) {
    if (node->inputs[s] == CLEAVE_INDEX_NONE && s == 1) {
      return kernel_fail(unit->analysis->message, CLEAVE_ERROR_INVALID_ARGUMENT,
                         "%s '%s': input 1 is left out", node->op, onednn_node_name(node));
    }
  }
  if (operator_entry->check != NULL) {
    ONEDNN_TRY(operator_entry->check(unit->analysis, node, kernel));
  }
  unit->taken[entry] = true;
  if (unit->count == 1) {
    return CLEAVE_OK;
  }
  if (kernel->kind == ONEDNN_PRODUCT) {
    ONEDNN_TRY(fold_factors(unit, kernel, &kernel->source));
    ONEDNN_TRY(fold_factors(unit, kernel, &kernel->weights));
    take_cast(unit, kernel);
  }
  ONEDNN_TRY(fold_pad(unit, kernel));
  if (onednn_unit_makes(unit, kernel->source) ||
      (kernel->weights != CLEAVE_INDEX_NONE && onednn_unit_makes(unit, kernel->weights))) {
    return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                       "%s '%s': the producer of its input cannot be computed inside it", node->op,
                       onednn_node_name(node));
  }
  uint32_t next = 0;
  while (next < unit->count && unit->taken[next]) {
    next++;
  }
  if (!operator_entry->takes_posts && next < unit->count) {
    return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                       "oneDNN has no post-op for %s after %s: node '%s'", unit_node(unit, next)->op,
                       node->op, onednn_node_name(unit_node(unit, next)));
  }
  return extend(unit, kernel);
}

// How much a value is worth as the start of a pointwise chain: the largest run-time operand is best.
static int64_t worth(const cleave_value_view_t *value) {
  int64_t count = cleave_view_element_count(&value->tensor);
  int64_t size = count >= 0 ? count : ((int64_t)1 << 50) + value->tensor.rank;
  return onednn_is_constant(value) ? size / 2 - ((int64_t)1 << 49) : size;
}

// Tries the inputs of the first node as the start of the chain, the most promising first.
static cleave_status_t recognise_pointwise(onednn_unit_t *unit, onednn_kernel_t *kernel) {
  const cleave_region_view_t *region = unit->analysis->region;
  uint32_t start = 0;
  while (start + 1 < unit->count && unit->taken[start]) {
    start++;
  }
  const cleave_node_view_t *first = unit_node(unit, start);
  bool tried[2] = {false, false};
  cleave_message_t *message = unit->analysis->message;
  cleave_message_t other = {.text = ""};
  cleave_status_t status = CLEAVE_ERROR_UNSUPPORTED;
  if (!onednn_pointwise_known(first)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "oneDNN has no primitive for %s: node '%s'",
                       first->op, onednn_node_name(first));
  }
  uint32_t slots = onednn_pointwise_arithmetic(first) ? 2 : 1;
  for (uint32_t attempt = 0; attempt < slots && status == CLEAVE_ERROR_UNSUPPORTED; attempt++) {
    uint32_t best = CLEAVE_INDEX_NONE;
    for (uint32_t s = 0; s < slots; s++) {
      if (!tried[s] && first->inputs[s] != CLEAVE_INDEX_NONE && !onednn_unit_makes(unit, first->inputs[s]) &&
          (best == CLEAVE_INDEX_NONE ||
           worth(&region->values[first->inputs[s]]) > worth(&region->values[first->inputs[best]]))) {
        best = s;
      }
    }
    if (best == CLEAVE_INDEX_NONE) {
      break;
    }
    tried[best] = true;
    reset(unit, kernel);
    kernel->source = first->inputs[best];
    kernel->output = first->inputs[best];
    // The reason that people see is that of the first attempt.
    unit->analysis->message = attempt == 0 ? message : &other;
    status = extend(unit, kernel);
    unit->analysis->message = message;
  }
  if (status == CLEAVE_OK && kernel->node == CLEAVE_INDEX_NONE) {
    kernel->node = unit->nodes[start];
    kernel->kind = kernel->post_count == 0 ? ONEDNN_RESHAPE : ONEDNN_POINTWISE;
  }
  return status;
}

// Most operands and results of a program: a loop has as many arguments, and one for scratch memory.
enum { MAX_TENSORS = 30 };

// Checks that all that crosses the border of a program is float32 and has elements.
static cleave_status_t check_program(const onednn_unit_t *unit, const kernel_lowered_t *lowered) {
  const onednn_analysis_t *analysis = unit->analysis;
  uint32_t inputs = lowered->program->input_count;
  uint32_t count = inputs + lowered->program->output_count;
  if (count > MAX_TENSORS || lowered->program->output_count == 0) {
    return kernel_fail(analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                       "%s '%s': the fusion has %u operand%s and results, expected at most %d",
                       unit_node(unit, 0)->op, onednn_node_name(unit_node(unit, 0)), (unsigned)count,
                       KERNEL_PLURAL(count), MAX_TENSORS);
  }
  for (uint32_t k = 0; k < count; k++) {
    const cleave_value_view_t *value =
        &analysis->region->values[k < inputs ? lowered->inputs[k] : lowered->outputs[k - inputs]];
    bool is_float = value->tensor.dtype == CLEAVE_DTYPE_F32;
    if (!is_float || cleave_view_element_count(&value->tensor) == 0) {
      return kernel_fail(analysis->message, CLEAVE_ERROR_UNSUPPORTED, "%s '%s': value '%s' %s",
                         unit_node(unit, 0)->op, onednn_node_name(unit_node(unit, 0)), value->name,
                         is_float ? "has no elements" : "is not float32");
    }
  }
  return CLEAVE_OK;
}

// Does the rule of the fusion that the unit comes from say so?
static bool says(const onednn_unit_t *unit, const char *name) {
  const onednn_analysis_t *analysis = unit->analysis;
  uint32_t fusion = unit->fusion;
  if (fusion != CLEAVE_INDEX_NONE && analysis->expansion.fusion_of != NULL) {
    fusion = analysis->expansion.fusion_of[fusion];
  }
  return onednn_fusion_says(analysis->given, fusion, name);
}

// A program of kernels/, whose shapes are all known.
static cleave_status_t recognise_program(onednn_unit_t *unit, onednn_kernel_t *kernel,
                                         cleave_message_t *message) {
  kernel_lowered_t lowered = {0};
  reset(unit, kernel);
  ONEDNN_TRY(kernel_lower(unit->analysis->lowerer, unit->count, unit->nodes, &lowered, message));
  cleave_status_t status = check_program(unit, &lowered);
  if (status == CLEAVE_OK) {
    kernel->kind = ONEDNN_GENERATED;
    kernel->fast_math = says(unit, "fast_math");
    kernel->node = unit->nodes[0];
    kernel->source = lowered.program->input_count > 0 ? lowered.inputs[0] : unit_node(unit, 0)->inputs[0];
    kernel->output = lowered.outputs[0];
  }
  kernel_program_destroy(lowered.program);
  return status;
}

static cleave_status_t recognise_chain(onednn_unit_t *unit, onednn_kernel_t *kernel);

cleave_status_t onednn_recognise(onednn_unit_t *unit, onednn_kernel_t *kernel) {
  if (says(unit, "kernel")) {
    return recognise_program(unit, kernel, unit->analysis->message);
  }
  cleave_status_t status = recognise_chain(unit, kernel);
  cleave_message_t other = {.text = ""};
  if (status == CLEAVE_ERROR_UNSUPPORTED && unit->count == 1) {
    /* The reason that people see is that of oneDNN. */
    cleave_message_t *message = unit->analysis->message;
    unit->analysis->message = &other;
    status = recognise_program(unit, kernel, &other) == CLEAVE_OK ? CLEAVE_OK : status;
    unit->analysis->message = message;
  }
  return status;
}

static cleave_status_t recognise_chain(onednn_unit_t *unit, onednn_kernel_t *kernel) {
  uint32_t main = CLEAVE_INDEX_NONE;
  const onednn_operator_t *found = NULL;
  bool shuffled = false;
  reset(unit, kernel);
  if (unit->count == 0) {
    return kernel_fail(unit->analysis->message, CLEAVE_ERROR_INVALID_ARGUMENT, "a fusion without nodes");
  }
  ONEDNN_TRY(check_values(unit));
  ONEDNN_TRY(onednn_quantization_check(unit));
  ONEDNN_TRY(onednn_recognise_shuffle(unit, kernel, &shuffled));
  if (shuffled) {
    return CLEAVE_OK;
  }
  for (uint32_t k = 0; k < unit->count; k++) {
    const cleave_node_view_t *node = unit_node(unit, k);
    const onednn_operator_t *entry = onednn_operator_find(node->op);
    if (entry == NULL || unit->taken[k] || (unit->count > 1 && onednn_node_is(node, "Pad"))) {
      continue;
    }
    if (found != NULL) {
      return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                         "%s '%s' and %s '%s' are two primitives of oneDNN", unit_node(unit, main)->op,
                         onednn_node_name(unit_node(unit, main)), node->op, onednn_node_name(node));
    }
    found = entry;
    main = k;
  }
  return found != NULL ? recognise_primitive(unit, kernel, main, found) : recognise_pointwise(unit, kernel);
}
