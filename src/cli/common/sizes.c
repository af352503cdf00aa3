// SPDX-License-Identifier: Apache-2.0
// Inputs tell sizes in an order of trust: names that --shape sets, then shapes that it gives, then tensors,
// then the saved plan. A size that one of them gave stays. Tensors that contradict --shape are errors here;
// what else contradicts is found when the model is bound.
#include "cli/common/sizes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/clone.h"
#include "ops/infer.h"
#include "partition/pattern/expression.h"
#include "partition/plan/plan_read.h"

static const cleave_value_record_t *input_record(const cleave_size_finder_t *finder, size_t index) {
  return cleave_graph_value(finder->graph, finder->graph->inputs.items[index]);
}

/* ---- symbols ---- */

/* The symbol that a dimension is; the count of symbols if it is none. */
static size_t symbol_of(const cleave_size_finder_t *finder, cleave_dim_t dim) {
  return cleave_dims_symbol_of(finder->graph->dims, dim);
}

static cleave_status_t fail_contradiction(const cleave_size_finder_t *finder, size_t symbol, size_t input,
                                          int32_t d, int64_t size, cleave_error_t *error) {
  const char *name = cleave_dims_symbol_name(finder->graph->dims, symbol);
  return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                          "--shape: %s is %" PRId64 ", but dimension %d (%s) of input '%s' is %" PRId64, name,
                          finder->symbols[symbol], (int)d, name, cleave_size_input_name(finder, input), size);
}

/* Dimension d of an input is `size`, by `source`. */
static cleave_status_t tell(cleave_size_finder_t *finder, size_t input, int32_t d, int64_t size,
                            cleave_size_source_t source, cleave_error_t *error) {
  const cleave_value_record_t *origin = cleave_size_origin(finder, input);
  size_t symbol = d < origin->rank ? symbol_of(finder, origin->dims[d]) : finder->symbol_count;
  if (symbol < finder->symbol_count && finder->sources[symbol] == CLEAVE_SIZE_NONE) {
    finder->symbols[symbol] = size;
    finder->sources[symbol] = size < 0 ? CLEAVE_SIZE_OPEN : source;
    return CLEAVE_OK;
  }
  bool contradicts = symbol < finder->symbol_count && finder->sources[symbol] == CLEAVE_SIZE_GIVEN &&
                     (source == CLEAVE_SIZE_GIVEN || source == CLEAVE_SIZE_TENSOR) && size >= 0 &&
                     size != finder->symbols[symbol];
  return contradicts ? fail_contradiction(finder, symbol, input, d, size, error) : CLEAVE_OK;
}

static cleave_status_t tell_all(cleave_size_finder_t *finder, size_t input, int32_t rank, const int64_t *dims,
                                cleave_size_source_t source, cleave_error_t *error) {
  const cleave_value_record_t *origin = cleave_size_origin(finder, input);
  for (int32_t d = 0; rank == origin->rank && d < rank; d++) {
    CLEAVE_TRY(tell(finder, input, d, dims[d], source, error));
  }
  return CLEAVE_OK;
}

/* Does the shape that --shape gives for an input fit the tensor that is given for it? */
static cleave_status_t check_tensor(const cleave_size_finder_t *finder, size_t input, int32_t rank,
                                    const int64_t *dims, cleave_error_t *error) {
  const cleave_tensor_t *tensor = finder->request->tensors != NULL ? finder->request->tensors[input] : NULL;
  bool fits = tensor == NULL || rank < 0 || tensor->rank == rank;
  for (int32_t d = 0; fits && tensor != NULL && d < rank; d++) {
    fits = dims[d] < 0 || dims[d] == tensor->dims[d];
  }
  if (fits) {
    return CLEAVE_OK;
  }
  cleave_text_t shape = {0};
  cleave_shape_print(NULL, tensor->rank, tensor->dims, &shape);
  cleave_status_t status =
      cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "--shape %s: the tensor for input '%s' is %s",
                       finder->request->shapes->items[finder->shape_of[input]],
                       cleave_size_input_name(finder, input), cleave_text_get(&shape));
  cleave_text_deinit(&shape);
  return status;
}

/* Finds the shape of input `index` that the saved plan was made for; false: it says no sizes. */
static bool plan_shape(const cleave_size_finder_t *finder, size_t index, int32_t *out_rank, int64_t *dims) {
  const cleave_plan_document_t *document = finder->request->document;
  for (uint32_t k = 0; document != NULL && k < document->graph_input_count; k++) {
    if (strcmp(document->graph_inputs[k].name, cleave_size_input_name(finder, index)) == 0) {
      return cleave_document_input_shape(&document->graph_inputs[k], out_rank, dims);
    }
  }
  return false;
}

static cleave_status_t tell_symbols(cleave_size_finder_t *finder, cleave_error_t *error) {
  const cleave_size_request_t *request = finder->request;
  int64_t dims[CLEAVE_MAX_RANK];
  int32_t rank = 0;
  for (size_t k = 0; k < finder->graph->inputs.count; k++) {
    if (finder->shape_of[k] != CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(cleave_size_given_shape(finder, k, &rank, dims, error));
      CLEAVE_TRY(check_tensor(finder, k, rank, dims, error));
      CLEAVE_TRY(tell_all(finder, k, rank, dims, CLEAVE_SIZE_GIVEN, error));
    }
  }
  for (size_t k = 0; request->tensors != NULL && k < finder->graph->inputs.count; k++) {
    if (request->tensors[k] != NULL) {
      CLEAVE_TRY(tell_all(finder, k, request->tensors[k]->rank, request->tensors[k]->dims, CLEAVE_SIZE_TENSOR,
                          error));
    }
  }
  for (size_t k = 0; k < finder->graph->inputs.count; k++) {
    if (plan_shape(finder, k, &rank, dims)) {
      CLEAVE_TRY(tell_all(finder, k, rank, dims, CLEAVE_SIZE_PLAN, error));
    }
  }
  return CLEAVE_OK;
}

/* The size of a symbol whose name is an expression of others ("past + 1"); its source is NONE if it is none,
 * or if nothing tells of one of them. */
static cleave_status_t size_by_name(const cleave_size_finder_t *finder, size_t symbol, int64_t *out_size,
                                    cleave_size_source_t *out_source, cleave_error_t *error) {
  const char *name = cleave_dims_symbol_name(finder->graph->dims, symbol);
  const cleave_expression_t *expression = NULL;
  cleave_dim_t sizes[CLEAVE_EXPRESSION_MAX_SYMBOLS];
  cleave_arena_t arena = {0};
  bool is_open = false;
  *out_size = CLEAVE_DIM_UNKNOWN;
  cleave_status_t status =
      cleave_expression_compile(&arena, name, 0, CLEAVE_EXPRESSION_SIZE, &expression, NULL);
  if (status == CLEAVE_OK) {
    for (uint32_t k = 0; k < expression->symbol_count; k++) {
      const char *other_name = expression->symbols[k];
      size_t other = cleave_dims_find_symbol(finder->graph->dims, other_name, strlen(other_name));
      sizes[k] = other < finder->symbol_count ? finder->symbols[other] : CLEAVE_DIM_UNKNOWN;
      is_open = is_open || (other < finder->symbol_count && finder->sources[other] == CLEAVE_SIZE_OPEN);
    }
    *out_size = cleave_expression_size(expression, NULL, sizes);
  }
  *out_source = cleave_dim_is_known(*out_size) ? CLEAVE_SIZE_NAME
                : is_open                      ? CLEAVE_SIZE_OPEN
                                               : CLEAVE_SIZE_NONE;
  cleave_arena_deinit(&arena);
  return status == CLEAVE_ERROR_OUT_OF_MEMORY ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

/* Sizes of symbols of inputs that nothing tells: what their names say, or `size`. */
static cleave_status_t take_named(cleave_size_finder_t *finder, bool by_name, int64_t size,
                                  cleave_error_t *error) {
  for (size_t k = 0; k < finder->graph->inputs.count; k++) {
    const cleave_value_record_t *origin = cleave_size_origin(finder, k);
    for (int32_t d = 0; d < origin->rank; d++) {
      size_t symbol = symbol_of(finder, origin->dims[d]);
      if (symbol == finder->symbol_count || finder->sources[symbol] != CLEAVE_SIZE_NONE) {
        continue;
      }
      const char *name = cleave_dims_symbol_name(finder->graph->dims, symbol);
      cleave_size_source_t source = CLEAVE_SIZE_NONE;
      int64_t own = CLEAVE_DIM_UNKNOWN;
      if (by_name) {
        CLEAVE_TRY(size_by_name(finder, symbol, &own, &source, error));
      } else if (strpbrk(name, "+-*/%") != NULL) {
        continue;
      }
      finder->symbols[symbol] = source == CLEAVE_SIZE_NONE ? size : own;
      finder->sources[symbol] = source != CLEAVE_SIZE_NONE ? source
                                : size < 0                 ? CLEAVE_SIZE_OPEN
                                                           : CLEAVE_SIZE_TAKEN;
    }
  }
  return CLEAVE_OK;
}

/* Symbols of inputs that nothing tells are 1, or what their names say; or left open. */
static cleave_status_t take_symbols(cleave_size_finder_t *finder, cleave_error_t *error) {
  cleave_text_t text = {0};
  int64_t size = finder->request->leaves_open ? CLEAVE_DIM_UNKNOWN : 1;
  CLEAVE_TRY(take_named(finder, false, size, error));
  CLEAVE_TRY(take_named(finder, true, size, error));
  for (size_t k = 0; k < finder->graph->inputs.count; k++) { /* those that stand in expressions alone */
    const cleave_value_record_t *record = input_record(finder, k);
    for (int32_t d = 0; d < record->rank; d++) {
      if (symbol_of(finder, record->dims[d]) < finder->symbol_count) {
        continue;
      }
      text.length = 0;
      cleave_dim_print(finder->graph->dims, record->dims[d], &text);
      for (size_t s = 0; cleave_dim_is_symbolic(record->dims[d]) && s < finder->symbol_count; s++) {
        if (finder->sources[s] == CLEAVE_SIZE_NONE &&
            strstr(cleave_text_get(&text), cleave_dims_symbol_name(finder->graph->dims, s)) != NULL) {
          finder->symbols[s] = size;
          finder->sources[s] = size < 0 ? CLEAVE_SIZE_OPEN : CLEAVE_SIZE_TAKEN;
        }
      }
    }
  }
  cleave_text_deinit(&text);
  return CLEAVE_OK;
}

/* ---- types ---- */

static cleave_status_t add_item(cleave_size_finder_t *finder, const char *name, const char *value,
                                cleave_size_source_t source, cleave_error_t *error) {
  uint32_t before = finder->names.count;
  cleave_string_t string;
  CLEAVE_TRY(cleave_strings_add(&finder->names, name, strlen(name), &string, error));
  if (finder->names.count == before) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_array_reserve(&finder->sizes->items, 1, error));
  cleave_size_t item = {.name = cleave_copy_text(name, strlen(name)),
                        .value = cleave_copy_text(value, strlen(value)),
                        .source = source};
  cleave_array_push_reserved(&finder->sizes->items, item);
  return item.name == NULL || item.value == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

static cleave_status_t add_dim(cleave_size_finder_t *finder, size_t input, int32_t d, cleave_dim_t open,
                               int64_t size, cleave_size_source_t source, cleave_error_t *error) {
  cleave_text_t name = {0};
  char value[32] = "?";
  if (cleave_dim_is_symbolic(open)) {
    cleave_dim_print(finder->graph->dims, open, &name);
  } else {
    cleave_text_format(&name, "%s[%d]", cleave_size_input_name(finder, input), (int)d);
  }
  if (size >= 0) {
    (void)snprintf(value, sizeof value, "%" PRId64, size);
  }
  cleave_status_t status = cleave_text_check(&name, error);
  CLEAVE_THEN(status, add_item(finder, cleave_text_get(&name), value, source, error));
  cleave_text_deinit(&name);
  return status;
}

/* A dimension that the model leaves open, and that neither --shape nor a tensor gives for this input. */
static int64_t close_dim(const cleave_size_finder_t *finder, size_t input, int32_t d,
                         cleave_size_source_t *out_source) {
  const cleave_value_record_t *record = input_record(finder, input);
  int64_t dims[CLEAVE_MAX_RANK];
  int32_t rank = 0;
  size_t symbol = symbol_of(finder, record->dims[d]);
  if (cleave_dim_is_symbolic(record->dims[d])) {
    int64_t size =
        cleave_dim_evaluate(finder->graph->dims, record->dims[d], finder->symbols, finder->symbol_count);
    *out_source = symbol < finder->symbol_count ? finder->sources[symbol] : CLEAVE_SIZE_TAKEN;
    *out_source = size < 0 ? CLEAVE_SIZE_OPEN : *out_source;
    return size < 0 ? record->dims[d] : size;
  }
  bool is_planned = plan_shape(finder, input, &rank, dims) && rank == record->rank && dims[d] >= 0;
  bool is_left = !is_planned && finder->request->leaves_open;
  *out_source = is_planned ? CLEAVE_SIZE_PLAN : is_left ? CLEAVE_SIZE_OPEN : CLEAVE_SIZE_TAKEN;
  return is_planned ? dims[d] : is_left ? CLEAVE_DIM_UNKNOWN : 1;
}

/* The type of an input, and the sizes of it that the model, as it is in its file, leaves open. */
static cleave_status_t make_type(cleave_size_finder_t *finder, size_t index, cleave_error_t *error) {
  const cleave_value_record_t *record = input_record(finder, index);
  const cleave_value_record_t *origin = cleave_size_origin(finder, index);
  cleave_tensor_view_t *type = &finder->sizes->types[index];
  int64_t *dims = finder->sizes->dims[index];
  const cleave_tensor_t *tensor = finder->request->tensors == NULL ? NULL : finder->request->tensors[index];
  cleave_size_source_t source = CLEAVE_SIZE_NONE;
  *type = (cleave_tensor_view_t){
      .size = sizeof *type, .dtype = (cleave_dtype_t)record->dtype, .rank = record->rank, .dims = dims};
  if (tensor != NULL) {
    type->dtype = tensor->dtype;
    type->rank = tensor->rank;
    memcpy(dims, tensor->dims, (size_t)tensor->rank * sizeof *dims);
    source = CLEAVE_SIZE_TENSOR;
  } else if (finder->shape_of[index] != CLEAVE_INDEX_NONE) {
    CLEAVE_TRY(cleave_size_given_shape(finder, index, &type->rank, dims, error));
    source = CLEAVE_SIZE_GIVEN;
  }
  if (type->dtype == CLEAVE_DTYPE_UNKNOWN) {
    type->dtype = CLEAVE_DTYPE_F32;
  }
  bool says_more = source != CLEAVE_SIZE_NONE || type->dtype != (cleave_dtype_t)origin->dtype ||
                   type->rank != origin->rank;
  for (int32_t d = 0; d < type->rank; d++) {
    cleave_size_source_t own = source;
    bool was_open = origin->rank == type->rank && !cleave_dim_is_known(origin->dims[d]);
    if (source == CLEAVE_SIZE_NONE) {
      dims[d] = record->dims[d];
      own = CLEAVE_SIZE_INFERENCE;
      if (!cleave_dim_is_known(dims[d])) {
        dims[d] = close_dim(finder, index, d, &own);
      }
    } else if (dims[d] < 0) {
      own = CLEAVE_SIZE_OPEN;
    }
    if (was_open) {
      says_more = says_more || dims[d] >= 0;
      CLEAVE_TRY(add_dim(finder, index, d, origin->dims[d], dims[d], own, error));
    }
  }
  finder->sizes->pointers[index] = says_more ? type : NULL;
  finder->sizes->closes = finder->sizes->closes || says_more;
  if (origin->rank >= 0) {
    return CLEAVE_OK;
  }
  cleave_text_t shape = {0};
  cleave_shape_print(finder->graph->dims, type->rank, dims, &shape);
  cleave_size_source_t whole = source != CLEAVE_SIZE_NONE ? source
                               : type->rank < 0           ? CLEAVE_SIZE_OPEN
                                                          : CLEAVE_SIZE_INFERENCE;
  cleave_status_t status = add_item(finder, cleave_size_input_name(finder, index),
                                    type->rank < 0 ? "?" : cleave_text_get(&shape), whole, error);
  cleave_text_deinit(&shape);
  return status;
}

/* Sizes that --shape gives and that no input has open: reading the model took them already. */
static cleave_status_t add_taken(cleave_size_finder_t *finder, cleave_error_t *error) {
  for (size_t symbol = 0; symbol < finder->symbol_count; symbol++) {
    char value[32];
    (void)snprintf(value, sizeof value, "%" PRId64, finder->symbols[symbol]);
    if (finder->sources[symbol] == CLEAVE_SIZE_GIVEN) {
      CLEAVE_TRY(add_item(finder, cleave_dims_symbol_name(finder->model->dims, symbol), value,
                          CLEAVE_SIZE_GIVEN, error));
    }
  }
  return CLEAVE_OK;
}

/* ---- inputs that the model says too little of ---- */

static bool is_vague(const cleave_value_record_t *record) {
  bool vague = record->rank < 0 || record->dtype == CLEAVE_DTYPE_UNKNOWN;
  for (int32_t d = 0; d < record->rank; d++) {
    vague = vague || record->dims[d] == CLEAVE_DIM_UNKNOWN;
  }
  return vague;
}

/* Infers the model with the given sizes, and lets inference take operands for equal. *out_graph is NULL if
 * nothing is open, or if the sizes contradict each other, which binding reports better. */
static cleave_status_t infer_vague(cleave_size_finder_t *finder, cleave_graph_t **out_graph,
                                   cleave_error_t *error) {
  const cleave_graph_t *model = finder->graph;
  cleave_graph_t *graph = NULL;
  cleave_error_t ignored = CLEAVE_ERROR_INIT;
  bool any = false;
  *out_graph = NULL;
  for (size_t k = 0; k < model->inputs.count; k++) {
    const cleave_tensor_t *tensor = finder->request->tensors == NULL ? NULL : finder->request->tensors[k];
    any = any ||
          (tensor == NULL && finder->shape_of[k] == CLEAVE_INDEX_NONE && is_vague(input_record(finder, k)));
  }
  if (!any) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_graph_copy(model, &graph, error));
  cleave_status_t status = CLEAVE_OK;
  for (size_t k = 0; status == CLEAVE_OK && k < model->inputs.count; k++) {
    const cleave_tensor_t *tensor = finder->request->tensors == NULL ? NULL : finder->request->tensors[k];
    int64_t dims[CLEAVE_MAX_RANK];
    int32_t rank = 0;
    cleave_dtype_t dtype = (cleave_dtype_t)input_record(finder, k)->dtype;
    if (tensor != NULL) {
      status = cleave_graph_set_type(graph, graph->inputs.items[k], tensor->dtype, tensor->rank, tensor->dims,
                                     error);
    } else if (finder->shape_of[k] != CLEAVE_INDEX_NONE) {
      status = cleave_size_given_shape(finder, k, &rank, dims, error);
      CLEAVE_THEN(status, cleave_graph_set_type(graph, graph->inputs.items[k], dtype, rank, dims, error));
    }
  }
  cleave_infer_options_t options = {.assume_equal = true};
  if (status == CLEAVE_OK && cleave_graph_infer(graph, &options, NULL, &ignored) == CLEAVE_OK) {
    *out_graph = graph;
    return CLEAVE_OK;
  }
  cleave_graph_destroy(graph);
  return ignored.status == CLEAVE_ERROR_OUT_OF_MEMORY ? cleave_error_out_of_memory(error) : status;
}

/* ---- all ---- */

static cleave_status_t start(cleave_size_finder_t *finder, cleave_error_t *error) {
  cleave_sizes_t *sizes = finder->sizes;
  size_t count = finder->graph->inputs.count;
  *sizes = (cleave_sizes_t){.input_count = count};
  sizes->types = cleave_allocate_zeroed(count, sizeof *sizes->types);
  sizes->pointers = cleave_allocate_zeroed(count, sizeof *sizes->pointers);
  sizes->dims = cleave_allocate_zeroed(count, sizeof *sizes->dims);
  finder->symbols = cleave_allocate(finder->symbol_count, sizeof *finder->symbols);
  finder->sources = cleave_allocate_zeroed(finder->symbol_count, sizeof *finder->sources);
  finder->shape_of = cleave_allocate(count, sizeof *finder->shape_of);
  CLEAVE_TRY_MEMORY(sizes->types != NULL && sizes->pointers != NULL && sizes->dims != NULL &&
                        finder->symbols != NULL && finder->sources != NULL && finder->shape_of != NULL,
                    error);
  memset(finder->symbols, 0xff, finder->symbol_count * sizeof *finder->symbols);
  memset(finder->shape_of, 0xff, count * sizeof *finder->shape_of);
  return CLEAVE_OK;
}

cleave_status_t cleave_sizes_find(const cleave_graph_t *graph, const cleave_size_request_t *request,
                                  cleave_sizes_t *out_sizes, cleave_error_t *error) {
  cleave_size_finder_t finder = {.model = graph,
                                 .graph = graph,
                                 .request = request,
                                 .sizes = out_sizes,
                                 .symbol_count = cleave_dims_symbol_count(graph->dims)};
  cleave_graph_t *inferred = NULL;
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(start(&finder, error));
  for (size_t k = 0; k < request->shapes->count; k++) {
    CLEAVE_TRY_CLEANUP(cleave_size_take_option(&finder, k, error));
  }
  CLEAVE_TRY_CLEANUP(infer_vague(&finder, &inferred, error));
  finder.graph = inferred != NULL ? inferred : graph;
  CLEAVE_TRY_CLEANUP(tell_symbols(&finder, error));
  CLEAVE_TRY_CLEANUP(take_symbols(&finder, error));
  for (size_t k = 0; k < graph->inputs.count; k++) {
    CLEAVE_TRY_CLEANUP(make_type(&finder, k, error));
  }
  CLEAVE_TRY_CLEANUP(add_taken(&finder, error));
cleanup:
  cleave_graph_destroy(inferred);
  cleave_strings_deinit(&finder.names);
  cleave_free(finder.symbols);
  cleave_free(finder.sources);
  cleave_free(finder.shape_of);
  return status;
}

void cleave_sizes_deinit(cleave_sizes_t *sizes) {
  for (size_t k = 0; k < sizes->items.count; k++) {
    cleave_free(sizes->items.items[k].name);
    cleave_free(sizes->items.items[k].value);
  }
  cleave_array_free(&sizes->items);
  cleave_free(sizes->types);
  cleave_free((void *)sizes->pointers);
  cleave_free(sizes->dims);
  *sizes = (cleave_sizes_t){0};
}

/* ---- reports ---- */

static const char *const SOURCES[] = {
    [CLEAVE_SIZE_NONE] = "",         [CLEAVE_SIZE_GIVEN] = "given",         [CLEAVE_SIZE_TENSOR] = "input",
    [CLEAVE_SIZE_PLAN] = "plan",     [CLEAVE_SIZE_INFERENCE] = "inference", [CLEAVE_SIZE_NAME] = "name",
    [CLEAVE_SIZE_TAKEN] = "default", [CLEAVE_SIZE_OPEN] = "left open"};

void cleave_sizes_print(const cleave_sizes_t *sizes, cleave_text_t *text) {
  static const char *const WORDS[] = {[CLEAVE_SIZE_NONE] = "",
                                      [CLEAVE_SIZE_GIVEN] = " given",
                                      [CLEAVE_SIZE_TENSOR] = " by an input",
                                      [CLEAVE_SIZE_PLAN] = " by the plan",
                                      [CLEAVE_SIZE_INFERENCE] = " by what it is combined with",
                                      [CLEAVE_SIZE_NAME] = " by its name",
                                      [CLEAVE_SIZE_TAKEN] = " taken",
                                      [CLEAVE_SIZE_OPEN] = " left open"};
  const cleave_size_t *taken = NULL;
  for (size_t k = 0; k < sizes->items.count; k++) {
    const cleave_size_t *item = &sizes->items.items[k];
    bool same = k + 1 < sizes->items.count && item[1].source == item->source;
    cleave_text_format(text, "%s%s = %s%s", k == 0 ? "" : ", ", item->name, item->value,
                       same ? "" : WORDS[item->source]);
    taken = taken == NULL && item->source == CLEAVE_SIZE_TAKEN ? item : taken;
  }
  if (taken != NULL) {
    size_t length = strcspn(taken->name, "[");
    bool has_name = taken->name[length] == '\0';
    cleave_text_format(text,
                       has_name ? "; --shape %.*s=SIZE sets it, %.*s=? leaves it open"
                                : "; --shape %.*s=SIZES sets it, ? in the place of a size leaves it open",
                       (int)length, taken->name, (int)length, taken->name);
  }
}

json_t *cleave_sizes_json(const cleave_sizes_t *sizes) {
  json_t *list = json_array();
  for (size_t k = 0; k < sizes->items.count; k++) {
    const cleave_size_t *item = &sizes->items.items[k];
    (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", item->name, "value", item->value,
                                                "from", SOURCES[item->source]));
  }
  return list;
}
