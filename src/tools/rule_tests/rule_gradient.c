// SPDX-License-Identifier: Apache-2.0
// `gradient` of a rule test: the gradients of the test's inputs by rules, against finite differences, on
// `cpu` in float64. What is differentiated is one number made of all outputs: the sum of sin(1.7 y + 0.3),
// which has another slope at each value.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/region/view.h"
#include "graph/clone.h"
#include "ops/infer.h"
#include "ops/ops.h"
#include "runtime/model/model.h"
#include "runtime/model/model_gradient.h"
#include "tools/rule_tests/rule_check.h"

enum { OPEN_SIZE = 2, SEED = 1, MAX_PICKS = 24, MAX_REPORTS = 4, NAME_SIZE = 32, MAX_MODELS = 5 };

/* Steps of finite differences of the fourth order, whose error is that of rounding, about 1e-12. If they
 * differ from the gradient, a kink or a pole may be near the point: the next, shorter step avoids it. */
static const double STEPS[] = {2e-4, 2e-6, 2e-8};
static const double TOLERANCES[] = {1e-7, 2e-6, 2e-4};
enum { STEP_COUNT = sizeof STEPS / sizeof STEPS[0] };

typedef struct comparison {
  const cleave_rule_test_t *test;
  const cleave_rule_list_t *list;
  cleave_model_t *models[MAX_MODELS]; /* the test's, then by turns with a loss and with gradients; owned */
  size_t model_count;
  size_t input_count;
  cleave_tensor_t **inputs;
  cleave_tensor_view_t *views;
  const cleave_tensor_view_t **pointers;
  const char **names;          /* of the inputs that are differentiated by */
  uint32_t *places;            /* of these among the inputs */
  cleave_tensor_t **gradients; /* of these; NULL: none passes, so that the slope has to be 0 */
  size_t name_count;
  cleave_session_t *session;
  char loss[NAME_SIZE];
} comparison_t;

// ---- one number of all outputs ----

static cleave_status_t add_op(cleave_graph_t *graph, const char *op, const cleave_value_t *inputs,
                              size_t count, cleave_value_t *out_value, cleave_error_t *error) {
  cleave_node_t node = CLEAVE_NODE_NONE;
  CLEAVE_TRY(cleave_graph_add_node(graph, cleave_op_find("", op), "", inputs, count, 1, &node, error));
  *out_value = cleave_node_output(graph, node, 0);
  return strncmp(op, "Reduce", 6) == 0 ? cleave_graph_set_int(graph, node, "keepdims", 0, error) : CLEAVE_OK;
}

static cleave_status_t add_number(cleave_graph_t *graph, double number, cleave_value_t *out_value,
                                  cleave_error_t *error) {
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(cleave_tensor_create(CLEAVE_DTYPE_F64, 0, NULL, &tensor, error));
  cleave_tensor_set_float(tensor, 0, number);
  cleave_tensor_touch(tensor);
  cleave_status_t status = cleave_graph_add_constant(graph, "", tensor, out_value, error);
  cleave_tensor_release(tensor);
  return status;
}

static cleave_status_t add_term(cleave_graph_t *graph, cleave_value_t value, cleave_value_t *out_term,
                                cleave_error_t *error) {
  cleave_value_t pair[2] = {value, CLEAVE_VALUE_NONE};
  CLEAVE_TRY(add_number(graph, 1.7, &pair[1], error));
  CLEAVE_TRY(add_op(graph, "Mul", pair, 2, &pair[0], error));
  CLEAVE_TRY(add_number(graph, 0.3, &pair[1], error));
  CLEAVE_TRY(add_op(graph, "Add", pair, 2, &pair[0], error));
  CLEAVE_TRY(add_op(graph, "Sin", pair, 1, &pair[0], error));
  return add_op(graph, "ReduceSum", pair, 1, out_term, error);
}

/* Adds the output `name`: of all outputs from `first` on that are float64. */
static cleave_status_t add_loss(cleave_graph_t *graph, size_t first, const char *name,
                                cleave_error_t *error) {
  cleave_value_t sum[2] = {CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE};
  for (size_t k = first; k < graph->outputs.count; k++) {
    cleave_value_t value = cleave_graph_output(graph, k);
    if (cleave_graph_value(graph, value)->dtype == CLEAVE_DTYPE_F64) {
      bool is_first = !cleave_value_exists(sum[0]);
      CLEAVE_TRY(add_term(graph, value, &sum[is_first ? 0 : 1], error));
      if (!is_first) {
        CLEAVE_TRY(add_op(graph, "Add", sum, 2, &sum[0], error));
      }
    }
  }
  if (!cleave_value_exists(sum[0])) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "expected an output of the graph that is float64");
  }
  cleave_infer_options_t options = {.fold = true};
  CLEAVE_TRY(cleave_graph_add_output(graph, name, sum[0], error));
  return cleave_graph_infer(graph, &options, NULL, error);
}

// ---- models ----

/* The last model with gradients of a loss over its outputs from `first` on. */
static cleave_status_t add_gradients(comparison_t *comparison, size_t first, cleave_error_t *error) {
  cleave_model_t *last = comparison->models[comparison->model_count - 1];
  cleave_graph_t *graph = NULL;
  cleave_model_t **models = comparison->models;
  CLEAVE_TRY(cleave_graph_copy(cleave_model_graph(last), &graph, error));
  (void)snprintf(comparison->loss, sizeof comparison->loss, "the loss %zu", comparison->model_count);
  CLEAVE_TRY_OR(add_loss(graph, first, comparison->loss, error), cleave_graph_destroy(graph));
  CLEAVE_TRY(cleave_model_create_sharing_take(graph, last, &models[comparison->model_count], error));
  comparison->model_count++;
  cleave_gradient_order_t order = {.loss = comparison->loss,
                                   .wrt = comparison->names,
                                   .wrt_count = comparison->name_count,
                                   .list = comparison->list,
                                   .partial = true};
  CLEAVE_TRY(cleave_model_gradient_by(models[comparison->model_count - 1], &order,
                                      &models[comparison->model_count], error));
  comparison->model_count++;
  return CLEAVE_OK;
}

static cleave_status_t draw_input(comparison_t *comparison, const cleave_graph_t *graph, size_t index,
                                  cleave_error_t *error) {
  const cleave_value_record_t *value = cleave_graph_value(graph, graph->inputs.items[index]);
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  for (int32_t d = 0; d < value->rank; d++) {
    dims[d] = cleave_dim_is_known(value->dims[d]) ? value->dims[d] : OPEN_SIZE;
  }
  cleave_tensor_t **tensor = &comparison->inputs[index];
  CLEAVE_TRY(cleave_tensor_create((cleave_dtype_t)value->dtype, value->rank < 0 ? 0 : value->rank, dims,
                                  tensor, error));
  const cleave_test_input_t *input =
      index < comparison->test->input_count ? &comparison->test->inputs[index] : NULL;
  if (input != NULL && input->has_range) {
    cleave_tensor_fill_uniform(*tensor, SEED + index, input->low, input->high);
  } else if (cleave_dtype_is_float((cleave_dtype_t)value->dtype)) {
    cleave_tensor_fill_normal(*tensor, SEED + index, 0.0, 1.0);
  } else if (value->dtype != CLEAVE_DTYPE_STRING) {
    cleave_tensor_fill_uniform(*tensor, SEED + index, 0.0, 2.0);
  }
  comparison->views[index] = cleave_tensor_view(*tensor);
  comparison->pointers[index] = &comparison->views[index];
  if (value->dtype == CLEAVE_DTYPE_F64 && (input == NULL || !input->is_given)) {
    comparison->places[comparison->name_count] = (uint32_t)index;
    comparison->names[comparison->name_count++] = cleave_value_name(graph, graph->inputs.items[index]);
  }
  return CLEAVE_OK;
}

static cleave_status_t prepare(comparison_t *comparison, cleave_error_t *error) {
  const cleave_graph_t *graph = cleave_model_graph(comparison->models[0]);
  size_t count = graph->inputs.count;
  comparison->input_count = count;
  comparison->inputs = cleave_allocate_zeroed(count + 1, sizeof *comparison->inputs);
  comparison->views = cleave_allocate_zeroed(count + 1, sizeof *comparison->views);
  comparison->pointers = cleave_allocate_zeroed(count + 1, sizeof *comparison->pointers);
  comparison->names = cleave_allocate_zeroed(count + 1, sizeof *comparison->names);
  comparison->places = cleave_allocate_zeroed(count + 1, sizeof *comparison->places);
  comparison->gradients = cleave_allocate_zeroed(count + 1, sizeof *comparison->gradients);
  CLEAVE_TRY_MEMORY(comparison->inputs != NULL && comparison->views != NULL && comparison->pointers != NULL &&
                        comparison->names != NULL && comparison->places != NULL &&
                        comparison->gradients != NULL,
                    error);
  for (size_t k = 0; k < count; k++) {
    CLEAVE_TRY(draw_input(comparison, graph, k, error));
  }
  if (comparison->name_count == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "expected an input of the graph that is float64");
  }
  return CLEAVE_OK;
}

// ---- numbers ----

static cleave_status_t open_session(comparison_t *comparison, int32_t threads, cleave_error_t *error) {
  cleave_session_options_t options = {.size = sizeof options, .threads = threads};
  CLEAVE_TRY(cleave_session_create(comparison->models[comparison->model_count - 1], NULL,
                                   comparison->pointers, comparison->input_count, &options,
                                   &comparison->session, error));
  for (size_t k = 0; k < comparison->input_count; k++) {
    CLEAVE_TRY(cleave_session_set_input(comparison->session, (uint32_t)k, &comparison->views[k], error));
  }
  CLEAVE_TRY(cleave_session_run(comparison->session, error));
  for (size_t k = 0; k < comparison->name_count; k++) {
    char name[256];
    cleave_tensor_view_t view;
    (void)snprintf(name, sizeof name, "grad(%.200s)", comparison->names[k]);
    uint32_t output = CLEAVE_INDEX_NONE; /* the last of that name: of the highest order */
    const cleave_model_t *model = comparison->models[comparison->model_count - 1];
    for (uint32_t o = 0; o < cleave_model_output_count(model); o++) {
      cleave_port_t port = {.size = sizeof port};
      CLEAVE_TRY(cleave_model_output(model, o, &port, error));
      output = strcmp(port.name, name) == 0 ? o : output;
    }
    if (output == CLEAVE_INDEX_NONE) {
      continue;
    }
    CLEAVE_TRY(cleave_session_output(comparison->session, output, &view, error));
    CLEAVE_TRY(cleave_tensor_create(view.dtype, view.rank, view.dims, &comparison->gradients[k], error));
    memcpy(comparison->gradients[k]->data, view.data, comparison->gradients[k]->bytes);
  }
  return CLEAVE_OK;
}

/* The loss where one element is moved by `offset`. */
static cleave_status_t evaluate(comparison_t *comparison, double *element, double offset, double *out_loss,
                                cleave_error_t *error) {
  double before = *element;
  cleave_tensor_view_t view;
  uint32_t output =
      cleave_model_find_output(comparison->models[comparison->model_count - 1], comparison->loss);
  *element = before + offset;
  cleave_status_t status = cleave_session_run(comparison->session, error);
  *element = before;
  CLEAVE_TRY(status);
  CLEAVE_TRY(cleave_session_output(comparison->session, output, &view, error));
  memcpy(out_loss, view.data, sizeof *out_loss);
  return CLEAVE_OK;
}

static cleave_status_t differ(comparison_t *comparison, double *element, double step, double *out_slope,
                              cleave_error_t *error) {
  double near[2] = {0.0, 0.0};
  double far[2] = {0.0, 0.0};
  CLEAVE_TRY(evaluate(comparison, element, step, &near[1], error));
  CLEAVE_TRY(evaluate(comparison, element, -step, &near[0], error));
  CLEAVE_TRY(evaluate(comparison, element, 2 * step, &far[1], error));
  CLEAVE_TRY(evaluate(comparison, element, -2 * step, &far[0], error));
  *out_slope = (8.0 * (near[1] - near[0]) - (far[1] - far[0])) / (12.0 * step);
  return CLEAVE_OK;
}

static cleave_status_t compare_element(comparison_t *comparison, double *element, double found, double scale,
                                       double *out_slope, bool *out_equal, cleave_error_t *error) {
  *out_equal = false;
  for (size_t s = 0; s < STEP_COUNT && !*out_equal; s++) {
    double slope = 0.0;
    CLEAVE_TRY(differ(comparison, element, STEPS[s], &slope, error));
    *out_equal = fabs(slope - found) <= TOLERANCES[s] * scale;
    *out_slope = s == 0 ? slope : *out_slope;
  }
  return CLEAVE_OK;
}

static cleave_status_t compare_input(comparison_t *comparison, size_t index, cleave_text_t *report,
                                     cleave_error_t *error) {
  cleave_tensor_t *input = comparison->inputs[comparison->places[index]];
  const double *gradient = comparison->gradients[index] == NULL ? NULL : comparison->gradients[index]->data;
  double scale = 1.0;
  int64_t count = input->count;
  int64_t picks = count < MAX_PICKS ? count : MAX_PICKS;
  uint32_t reported = 0;
  for (int64_t k = 0; gradient != NULL && k < count; k++) {
    scale = fmax(scale, fabs(gradient[k]));
  }
  for (int64_t k = 0; k < picks && reported < MAX_REPORTS; k++) {
    int64_t place = k * count / picks;
    double slope = 0.0;
    bool is_equal = false;
    double found = gradient == NULL ? 0.0 : gradient[place];
    CLEAVE_TRY(
        compare_element(comparison, (double *)input->data + place, found, scale, &slope, &is_equal, error));
    if (!is_equal) {
      cleave_text_show(report,
                       "gradient: of '%s', element %lld: expected %.9g (finite differences), found %.9g%s\n",
                       comparison->names[index], (long long)place, slope, found,
                       gradient == NULL ? ", since none passes" : "");
      reported++;
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t run(comparison_t *comparison, int32_t threads, cleave_text_t *report,
                           cleave_error_t *error) {
  size_t first = 0;
  CLEAVE_TRY(prepare(comparison, error));
  for (int32_t order = 1; order <= comparison->test->gradient; order++) {
    size_t outputs = cleave_model_graph(comparison->models[comparison->model_count - 1])->outputs.count;
    CLEAVE_TRY(add_gradients(comparison, first, error));
    first = outputs + 1; /* after the loss: the gradients */
  }
  CLEAVE_TRY(open_session(comparison, threads, error));
  for (size_t k = 0; k < comparison->name_count; k++) {
    CLEAVE_TRY(compare_input(comparison, k, report, error));
  }
  return CLEAVE_OK;
}

static void deinit(comparison_t *comparison) {
  cleave_session_destroy(comparison->session);
  for (size_t k = 0; comparison->inputs != NULL && k < comparison->input_count; k++) {
    cleave_tensor_release(comparison->inputs[k]);
  }
  for (size_t k = 0; comparison->gradients != NULL && k < comparison->name_count; k++) {
    cleave_tensor_release(comparison->gradients[k]);
  }
  while (comparison->model_count > 0) {
    cleave_model_release(comparison->models[--comparison->model_count]);
  }
  cleave_free(comparison->inputs);
  cleave_free(comparison->views);
  cleave_free((void *)comparison->pointers);
  cleave_free((void *)comparison->names);
  cleave_free(comparison->places);
  cleave_free(comparison->gradients);
}

cleave_status_t cleave_rule_gradient(const cleave_rule_list_t *list, const cleave_rule_test_t *test,
                                     const cleave_graph_t *graph, int32_t threads, cleave_text_t *report,
                                     cleave_error_t *error) {
  comparison_t comparison = {.test = test, .list = list};
  cleave_error_t failure = CLEAVE_ERROR_INIT;
  cleave_graph_t *copy = NULL;
  cleave_status_t status = cleave_graph_copy(graph, &copy, &failure);
  if (status == CLEAVE_OK) {
    copy->context = graph->context;
    status = cleave_model_create_take(copy, &comparison.models[0], &failure);
  }
  if (status == CLEAVE_OK) {
    comparison.model_count = 1;
    status = run(&comparison, threads, report, &failure);
  }
  deinit(&comparison);
  if (status == CLEAVE_ERROR_OUT_OF_MEMORY) {
    return cleave_error_out_of_memory(error);
  }
  if (status != CLEAVE_OK) {
    cleave_text_show(report, "gradient: %s\n", failure.message);
  }
  return CLEAVE_OK;
}
