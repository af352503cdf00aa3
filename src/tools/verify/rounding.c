// SPDX-License-Identifier: Apache-2.0
// A table per output has a tolerance for each size (binary exponent) of a value: masks of -1e38 or the
// largest activation of a tensor say nothing about what rounding does to small values. A size with few values
// takes those of its neighbours along. Seeds are fixed: the same model gives the same verdict.
#include "tools/verify/rounding.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "graph/clone.h"
#include "ops/ops.h"

enum { RUNS = 2, ENOUGH = 32, PATTERN = 1 << 16 };

/* Units in the last place of the largest value that every kernel may be off: approximations of functions like
 * exp and erf are good to some units. */
static const double UNITS = 16.0;
/* Another order of evaluation may differ by this many times the largest change that was measured.
 * Winograd's algorithm for windows of 3x3 is off by eight times what a plain sum is on average, and by 15 at
 * most. */
static const double MARGIN = 16.0;
/* Kernels sum in blocks: errors grow with the square root of the number of terms over this. */
static const double BLOCK = 16.0;

/* UNITS in regions of fewer digits, whose functions are as good as those of float32. */
static const double LOW_UNITS = 4.0;

/* Digits of the significand, the hidden one included; 0: no float. `low` is what float32 has, or 0. */
static int digits_of(cleave_dtype_t dtype, int low) {
  switch (dtype) {
    case CLEAVE_DTYPE_F64: return 53;
    case CLEAVE_DTYPE_F32: return low > 0 ? low : 24;
    case CLEAVE_DTYPE_F16: return 11;
    case CLEAVE_DTYPE_BF16: return 8;
    default: return 0;
  }
}

/* 8-bit integers, all of one size, may be the next ones. */
static bool is_quantized(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_U8 || dtype == CLEAVE_DTYPE_I8;
}

/* Steps of 8-bit integers are those of the largest values; most are smaller. */
static int digits_of_precision(const char *name) {
  static const struct {
    const char *name;
    int digits;
  } known[] = {{"bfloat16", 8}, {"float16", 11}, {"int8", 6}};
  for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
    if (strcmp(known[k].name, name) == 0) {
      return known[k].digits;
    }
  }
  return 0;
}

static int digits_of_region(const cleave_plan_region_t *region) {
  for (uint32_t k = 0; k < region->attribute_count; k++) {
    const cleave_attribute_t *attribute = &region->attributes[k];
    if (attribute->kind == CLEAVE_ATTRIBUTE_STRING && strcmp(attribute->name, "precision") == 0) {
      return digits_of_precision(attribute->s);
    }
    if (attribute->kind == CLEAVE_ATTRIBUTE_INT && attribute->i != 0 &&
        strcmp(attribute->name, "tf32") == 0) {
      return 11;
    }
  }
  return 0;
}

int cleave_rounding_digits(const cleave_plan_region_t *regions, size_t count) {
  int fewest = 0;
  for (size_t k = 0; k < count; k++) {
    int digits = digits_of_region(&regions[k]);
    fewest = digits > 0 && (fewest == 0 || digits < fewest) ? digits : fewest;
  }
  return fewest;
}

/* ---- a graph that rounds more ---- */

/* One of two numbers, by chance, for each element; the second one for one of
 * 2^bits. They repeat along the first axes of large values. */
static cleave_status_t make_changes(const cleave_value_record_t *record, const double *numbers, int bits,
                                    uint64_t seed, cleave_tensor_t **out_tensor, cleave_error_t *error) {
  int64_t dims[CLEAVE_MAX_RANK];
  int64_t count = 1;
  int32_t rank = 0;
  int32_t first = record->rank < 0 ? 0 : record->rank;
  while (first > 0 && record->dims[first - 1] > 0 && record->dims[first - 1] <= PATTERN / count) {
    count *= record->dims[--first];
  }
  for (int32_t d = first; d < record->rank; d++) {
    dims[rank++] = record->dims[d];
  }
  CLEAVE_TRY(cleave_tensor_create((cleave_dtype_t)record->dtype, rank, dims, out_tensor, error));
  for (int64_t k = 0; k < count; k++) {
    bool is_changed = (cleave_hash_combine(seed, (uint64_t)k) >> 17 & ((1U << bits) - 1)) == 0;
    cleave_tensor_set_float(*out_tensor, k, numbers[is_changed ? 1 : 0]);
  }
  return CLEAVE_OK;
}

typedef struct disturbance {
  const char *op;    /* that applies it */
  double numbers[2]; /* the one that changes nothing, and the other */
  int bits;          /* one element of 2^bits gets the other */
  uint64_t seed;
} disturbance_t;

/* All that read `value` read it with the change from now on. */
static cleave_status_t disturb(cleave_graph_t *graph, cleave_value_t value, const disturbance_t *change,
                               cleave_error_t *error) {
  cleave_value_record_t record = *cleave_graph_value(graph, value); /* adding moves the records */
  cleave_value_t changes = CLEAVE_VALUE_NONE;
  cleave_node_t node = CLEAVE_NODE_NONE;
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(make_changes(&record, change->numbers, change->bits, change->seed, &tensor, error));
  cleave_status_t status = cleave_graph_add_constant(graph, "", tensor, &changes, error);
  cleave_tensor_release(tensor);
  CLEAVE_TRY(status);
  const cleave_value_t operands[2] = {CLEAVE_VALUE_NONE, changes};
  CLEAVE_TRY(cleave_graph_add_node(graph, cleave_op_find("", change->op), "", operands, 2, 1, &node, error));
  cleave_value_t changed = cleave_node_output(graph, node, 0);
  CLEAVE_TRY(
      cleave_graph_set_type(graph, changed, (cleave_dtype_t)record.dtype, record.rank, record.dims, error));
  cleave_graph_replace_uses(graph, value, changed);
  cleave_graph_set_input(graph, node, 0, value);
  return CLEAVE_OK;
}

/* Numbers between two steps of a quantization may be rounded to either of them: one in 16 takes the next. */
static cleave_status_t disturb_steps(cleave_graph_t *graph, cleave_node_t node, uint64_t seed,
                                     cleave_error_t *error) {
  const cleave_node_record_t *record = cleave_graph_node(graph, node);
  if (record->op->id != CLEAVE_OP_DequantizeLinear || record->input_count < 2 ||
      cleave_value_is_constant(graph, cleave_node_input(graph, node, 0))) {
    return CLEAVE_OK;
  }
  const cleave_value_record_t *scale = cleave_graph_value(graph, cleave_node_input(graph, node, 1));
  if (scale->tensor == NULL || scale->tensor->count != 1) {
    return CLEAVE_OK;
  }
  const disturbance_t step = {
      .op = "Add", .numbers = {0.0, cleave_tensor_get_float(scale->tensor, 0)}, .bits = 4, .seed = seed};
  return disturb(graph, cleave_node_output(graph, node, 0), &step, error);
}

/* Integers that a rule rounded to are off by up to half a step, which is as much as if one in 16 was the next
 * one. They move towards zero, so that none leaves its type. */
static cleave_status_t disturb_integers(cleave_graph_t *graph, cleave_node_t node, uint64_t seed,
                                        cleave_error_t *error) {
  const cleave_node_record_t *record = cleave_graph_node(graph, node);
  if (record->op->id != CLEAVE_OP_DequantizeLinear) {
    return CLEAVE_OK;
  }
  const cleave_tensor_t *integers = cleave_graph_value(graph, cleave_node_input(graph, node, 0))->tensor;
  if (integers == NULL || !is_quantized(integers->dtype)) {
    return CLEAVE_OK;
  }
  cleave_value_t value = CLEAVE_VALUE_NONE;
  cleave_tensor_t *changed = NULL;
  CLEAVE_TRY(cleave_tensor_create(integers->dtype, integers->rank, integers->dims, &changed, error));
  for (int64_t k = 0; k < integers->count; k++) {
    double integer = cleave_tensor_get_float(integers, k);
    bool is_changed = (cleave_hash_combine(seed, (uint64_t)k) >> 17 & 15U) == 0;
    double step = integer > 0.0 ? 1.0 : integer < 0.0 ? -1.0 : 0.0;
    cleave_tensor_set_float(changed, k, is_changed ? integer - step : integer);
  }
  cleave_status_t status = cleave_graph_add_constant(graph, "", changed, &value, error);
  cleave_tensor_release(changed);
  if (status == CLEAVE_OK) {
    cleave_graph_set_input(graph, node, 0, value);
  }
  return status;
}

/* How many terms an element of the node's output is the sum of, about. */
static double terms_of(const cleave_graph_t *graph, cleave_node_t node) {
  const cleave_value_record_t *output = cleave_graph_value(graph, cleave_node_output(graph, node, 0));
  int64_t count = 0;
  bool is_known = cleave_shape_element_count(output->rank, output->dims, &count) && count > 0;
  double terms = is_known ? cleave_op_flops(graph, node) / (2.0 * (double)count) : 1.0;
  return terms > 1.0 ? terms : 1.0;
}

/* Factors 1 and a little less: more than 1 could make an infinity. */
static cleave_status_t disturb_all(const cleave_rounding_t *rounding, cleave_graph_t *graph, uint64_t seed,
                                   cleave_error_t *error) {
  const int low = rounding->digits;
  uint32_t bound = cleave_graph_value_bound(graph);
  for (uint32_t v = 0; v < bound; v++) {
    cleave_value_t value = {v};
    const cleave_value_record_t *record = cleave_graph_value(graph, value);
    cleave_node_t producer = {record->producer};
    bool is_made = cleave_node_exists(producer) && cleave_node_is_live(graph, producer);
    int digits = digits_of((cleave_dtype_t)record->dtype, low);
    if (record->is_removed || digits == 0 || record->use_count == 0 || !(is_made || record->is_input)) {
      continue;
    }
    /* Products of fewer digits are added up in float32. */
    double growth = is_made && low == 0 ? sqrt(terms_of(graph, producer) / BLOCK) : 1.0;
    double change = ldexp(growth > 1.0 ? growth : 1.0, 1 - digits);
    const disturbance_t factors = {
        .op = "Mul", .numbers = {1.0, 1.0 - change}, .bits = 1, .seed = cleave_hash_combine(seed, v)};
    CLEAVE_TRY(disturb(graph, value, &factors, error));
    if (is_made && rounding->narrowed_from > 0 && v >= rounding->narrowed_from) {
      CLEAVE_TRY(disturb_integers(graph, producer, cleave_hash_combine(seed, v ^ bound), error));
    }
    if (is_made) {
      CLEAVE_TRY(disturb_steps(graph, producer, cleave_hash_combine(seed, ~(uint64_t)v), error));
    }
  }
  return CLEAVE_OK;
}

/* ---- sizes ---- */

typedef struct sizes {
  double change[CLEAVE_CHECK_SIZES]; /* the largest of a value of this size */
  int64_t count[CLEAVE_CHECK_SIZES];
} sizes_t;

static void note_steps(const cleave_tensor_t *changed, const cleave_tensor_t *values, sizes_t *sizes) {
  for (int64_t k = 0; k < values->count && k < changed->count; k++) {
    double change = fabs((double)(cleave_tensor_get_int(changed, k) - cleave_tensor_get_int(values, k)));
    sizes->change[0] = change > sizes->change[0] ? change : sizes->change[0];
  }
}

static void note_changes(const cleave_tensor_t *changed, const cleave_tensor_t *values, sizes_t *sizes) {
  for (int64_t k = 0; k < values->count && k < changed->count; k++) {
    double value = cleave_tensor_get_float(values, k);
    double change = fabs(cleave_tensor_get_float(changed, k) - value);
    if (isfinite(value) && isfinite(change)) {
      uint32_t size = cleave_check_size(value);
      sizes->count[size]++;
      sizes->change[size] = change > sizes->change[size] ? change : sizes->change[size];
    }
  }
}

/* The largest of the values that lie within one addition of this size, as a power of two above it. A few
 * values that are small by chance, zeros among them, are what is left of larger ones. */
static double largest_near(const sizes_t *sizes, uint32_t size, int digits) {
  uint32_t usual = size > 0 ? size : 1;
  int64_t count = sizes->count[usual];
  while (usual < CLEAVE_CHECK_SIZES - 1 && count < ENOUGH) {
    count += sizes->count[++usual];
  }
  uint32_t top = usual + (uint32_t)digits;
  top = top < CLEAVE_CHECK_SIZES ? top : CLEAVE_CHECK_SIZES - 1;
  while (top > 0 && sizes->count[top] == 0) {
    top--;
  }
  return cleave_check_size_bound(top);
}

static double change_near(const sizes_t *sizes, uint32_t size) {
  int64_t count = 0;
  double change = 0.0;
  for (uint32_t k = size; k < CLEAVE_CHECK_SIZES && count < ENOUGH; k++) {
    count += sizes->count[k];
    change = sizes->change[k] > change ? sizes->change[k] : change;
  }
  for (uint32_t k = size; k > 0 && count < ENOUGH; k--) {
    count += sizes->count[k - 1];
    change = sizes->change[k - 1] > change ? sizes->change[k - 1] : change;
  }
  return change;
}

static void fill_table(const sizes_t *sizes, cleave_dtype_t dtype, int low, double *table) {
  for (uint32_t k = 0; is_quantized(dtype) && k < CLEAVE_CHECK_SIZES; k++) {
    table[k] = 1.0 + sizes->change[0];
  }
  if (is_quantized(dtype)) {
    return;
  }
  int own = digits_of(dtype, 0); /* sums have all of them */
  double unit = low > 0 ? ldexp(LOW_UNITS, -digits_of(dtype, low)) : ldexp(UNITS, -own);
  for (uint32_t k = 0; k < CLEAVE_CHECK_SIZES; k++) {
    table[k] = unit * largest_near(sizes, k, own) + MARGIN * change_near(sizes, k);
  }
}

/* ---- measuring ---- */

static cleave_status_t run_disturbed(const cleave_rounding_t *rounding, uint64_t seed, sizes_t *sizes,
                                     cleave_error_t *error) {
  cleave_graph_t *graph = NULL;
  cleave_status_t status = CLEAVE_OK;
  cleave_tensor_t **results = cleave_allocate_zeroed(rounding->value_count + 1, sizeof *results);
  CLEAVE_TRY_MEMORY(results, error);
  CLEAVE_TRY_CLEANUP(cleave_graph_copy(rounding->graph, &graph, error));
  CLEAVE_TRY_CLEANUP(disturb_all(rounding, graph, seed, error));
  CLEAVE_TRY_CLEANUP(cleave_check_reference(graph, rounding->inputs, rounding->input_count, rounding->threads,
                                            results, rounding->value_count, error));
  for (size_t k = 0; k < rounding->value_count; k++) {
    if (digits_of(rounding->values[k]->dtype, 0) > 0) {
      note_changes(results[k], rounding->values[k], &sizes[k]);
    } else if (is_quantized(rounding->values[k]->dtype)) {
      note_steps(results[k], rounding->values[k], &sizes[k]);
    }
  }
cleanup:
  for (size_t k = 0; k < rounding->value_count; k++) {
    cleave_tensor_release(results[k]);
  }
  cleave_free(results);
  cleave_graph_destroy(graph);
  return status;
}

static cleave_status_t measure(cleave_rounding_t *rounding, cleave_error_t *error) {
  size_t count = rounding->value_count;
  cleave_status_t status = CLEAVE_OK;
  sizes_t *sizes = cleave_allocate_zeroed(count + 1, sizeof *sizes);
  double *tolerances = cleave_allocate_zeroed(count * CLEAVE_CHECK_SIZES + 1, sizeof *tolerances);
  CLEAVE_TRY_MEMORY_CLEANUP(sizes != NULL && tolerances != NULL, error);
  for (uint64_t run = 1; run <= RUNS; run++) {
    CLEAVE_TRY_CLEANUP(run_disturbed(rounding, run, sizes, error));
  }
  for (size_t k = 0; k < count; k++) {
    fill_table(&sizes[k], rounding->values[k]->dtype, rounding->digits, tolerances + k * CLEAVE_CHECK_SIZES);
  }
  rounding->tolerances = tolerances;
  tolerances = NULL;
cleanup:
  cleave_free(tolerances);
  cleave_free(sizes);
  return status;
}

/* Compares, and allows only for the last places of the largest values. */
static cleave_status_t check_strictly(const cleave_tensor_t *values, int low,
                                      const cleave_tensor_view_t *actual, const cleave_tensor_t *expected,
                                      cleave_check_result_t *out_result, cleave_error_t *error) {
  double table[CLEAVE_CHECK_SIZES];
  sizes_t sizes = {.count = {0}};
  cleave_check_tolerance_t tolerance = {.by_size = table};
  if (digits_of(values->dtype, 0) > 0) {
    note_changes(values, values, &sizes);
  }
  fill_table(&sizes, values->dtype, low, table);
  return cleave_check_tensor(actual, expected, &tolerance, out_result, error);
}

static bool quantizes(const cleave_graph_t *graph) {
  for (uint32_t k = 0; k < cleave_graph_node_bound(graph); k++) {
    const cleave_op_t *op = cleave_graph_node(graph, (cleave_node_t){k})->op;
    if (op != NULL && op->id == CLEAVE_OP_QuantizeLinear) {
      return true;
    }
  }
  return false;
}

cleave_status_t cleave_rounding_check(cleave_rounding_t *rounding, size_t index,
                                      const cleave_tensor_view_t *actual, const cleave_tensor_t *expected,
                                      cleave_check_result_t *out_result, cleave_error_t *error) {
  const cleave_tensor_t *values = rounding->values[index];
  cleave_check_tolerance_t tolerance = {.by_size = NULL};
  if (digits_of(values->dtype, 0) == 0 && !(is_quantized(values->dtype) && quantizes(rounding->graph))) {
    return cleave_check_tensor(actual, expected, &tolerance, out_result, error);
  }
  CLEAVE_TRY(check_strictly(values, rounding->digits, actual, expected, out_result, error));
  if (out_result->matches || !out_result->difference.same_type) {
    return CLEAVE_OK;
  }
  if (rounding->tolerances == NULL) {
    CLEAVE_TRY(measure(rounding, error));
  }
  tolerance.by_size = rounding->tolerances + index * CLEAVE_CHECK_SIZES;
  return cleave_check_tensor(actual, expected, &tolerance, out_result, error);
}

void cleave_rounding_deinit(cleave_rounding_t *rounding) {
  cleave_free(rounding->tolerances);
  rounding->tolerances = NULL;
}
