// SPDX-License-Identifier: Apache-2.0
// `equal` of a rule test: the plan runs on its backends, the graph of the test on `cpu`, on the same inputs.
// They run again on wider values, because a rule that is right by chance on small ones shows only there. A
// region that its backend did not compile runs node by node on `cpu`, if it would be equal to itself: it
// counts as a failure.
#include "backend/region/view.h"
#include "tools/rule_tests/rule_check.h"
#include "tools/verify/check.h"
#include "tools/verify/draw.h"
#include "tools/verify/verify.h"

enum { OPEN_SIZE = 2 };
static const double WIDER = 10.0;
#define DATA_LIMIT ((size_t)1 << 30) /* bytes of all values of the graph */

typedef struct equality {
  const cleave_rule_test_t *test;
  const cleave_plan_t *plan;
  int32_t threads;
  const cleave_session_options_t *session_options; /* or NULL */
  size_t input_count;
  size_t output_count;
  cleave_tensor_t **inputs;
  cleave_tensor_t **expected;
  cleave_tensor_view_t *views;
  const cleave_tensor_view_t **pointers;
  cleave_session_t *session;
  bool is_wider; /* the inputs are those of the second run */
} equality_t;

/* Bytes of all values that run, as far as their sizes are known. */
static bool is_small(const cleave_graph_t *graph) {
  size_t total = 0;
  for (size_t k = 0; k < graph->values.count; k++) {
    const cleave_value_record_t *value = &graph->values.items[k];
    size_t bytes = cleave_dtype_size((cleave_dtype_t)value->dtype);
    for (int32_t d = 0; d < value->rank && !value->is_removed; d++) {
      size_t size = cleave_dim_is_known(value->dims[d]) ? (size_t)value->dims[d] : OPEN_SIZE;
      if (!cleave_size_multiply(bytes, size, &bytes)) {
        return false;
      }
    }
    if (!value->is_removed && (!cleave_size_add(total, bytes, &total) || total > DATA_LIMIT)) {
      return false;
    }
  }
  return true;
}

static cleave_status_t prepare(equality_t *equality, cleave_error_t *error) {
  equality->input_count = equality->plan->source->inputs.count;
  equality->output_count = equality->plan->source->outputs.count;
  size_t inputs = equality->input_count;
  equality->inputs = cleave_allocate_zeroed(inputs, sizeof *equality->inputs);
  equality->views = cleave_allocate_zeroed(inputs, sizeof *equality->views);
  equality->pointers = cleave_allocate_zeroed(inputs, sizeof *equality->pointers);
  equality->expected = cleave_allocate_zeroed(equality->output_count, sizeof *equality->expected);
  CLEAVE_TRY_MEMORY(equality->inputs != NULL && equality->views != NULL && equality->pointers != NULL &&
                        equality->expected != NULL,
                    error);
  for (size_t k = 0; k < inputs; k++) {
    CLEAVE_TRY(
        cleave_rule_draw_input(equality->test, equality->plan->source, k, &equality->inputs[k], error));
    equality->views[k] = cleave_tensor_view(equality->inputs[k]);
    equality->pointers[k] = &equality->views[k];
  }
  return CLEAVE_OK;
}

/* On inputs that were set. False in `out_runs`: the graph of the test cannot run on them, or leaves what
 * floats can hold. */
static cleave_status_t run_reference(equality_t *equality, bool *out_runs, cleave_error_t *error) {
  CLEAVE_TRY(cleave_check_reference(equality->plan->source, equality->inputs, equality->input_count,
                                    equality->threads, equality->expected, equality->output_count, error));
  *out_runs = true;
  for (size_t k = 0; k < equality->output_count; k++) {
    *out_runs = *out_runs && cleave_draw_is_finite(equality->expected[k]);
  }
  return CLEAVE_OK;
}

static cleave_status_t run_plan(equality_t *equality, cleave_error_t *error) {
  for (size_t k = 0; k < equality->input_count; k++) {
    CLEAVE_TRY(cleave_session_set_input(equality->session, (uint32_t)k, &equality->views[k], error));
  }
  return cleave_session_run(equality->session, error);
}

static cleave_status_t run(equality_t *equality, cleave_error_t *error) {
  const cleave_plan_t *plan = equality->plan;
  bool runs = false;
  cleave_session_options_t options = {.size = sizeof options};
  if (equality->session_options != NULL) {
    options = *equality->session_options;
  }
  options.threads = equality->threads;
  CLEAVE_TRY(run_reference(equality, &runs, error));
  CLEAVE_TRY(cleave_session_create_planned(plan->source, plan, equality->pointers, equality->input_count,
                                           &options, &equality->session, error));
  return run_plan(equality, error);
}

static cleave_status_t compare_output(const equality_t *equality, const cleave_verify_options_t *options,
                                      cleave_rounding_t *rounding, uint32_t index, cleave_text_t *report,
                                      cleave_error_t *error) {
  const cleave_graph_t *graph = equality->plan->source;
  const cleave_tensor_t *expected = equality->expected[index];
  cleave_tensor_view_t found;
  cleave_check_result_t result;
  CLEAVE_TRY(cleave_session_output(equality->session, index, &found, error));
  CLEAVE_TRY(cleave_verify_compare(options, rounding, index, &found, expected, &result, error));
  if (!result.matches) {
    cleave_text_show(report, "equal: %s", equality->is_wider ? "on wider values than normal ones: " : "");
    cleave_check_explain(cleave_graph_output_name(graph, index), &found, expected, &result, report);
    cleave_text_add(report, "\n");
  }
  return CLEAVE_OK;
}

static cleave_status_t compare(const equality_t *equality, cleave_text_t *report, cleave_error_t *error) {
  cleave_verify_options_t options = {.rtol = equality->test->rtol, .atol = equality->test->atol};
  cleave_rounding_t rounding = {
      .graph = equality->plan->source,
      .inputs = equality->inputs,
      .input_count = equality->input_count,
      .values = equality->expected,
      .value_count = equality->output_count,
      .threads = equality->threads,
      .digits = cleave_rounding_digits(equality->plan->regions, equality->plan->region_count)};
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t k = 0; k < equality->output_count && status == CLEAVE_OK; k++) {
    status = compare_output(equality, &options, &rounding, k, report, error);
  }
  cleave_rounding_deinit(&rounding);
  return status;
}

/* ---- wider values ---- */

static bool is_for_any_values(const equality_t *equality) {
  const cleave_plan_t *plan = equality->plan;
  return cleave_rounding_digits(plan->regions, plan->region_count) == 0 &&
         !cleave_draw_narrows(plan->source, plan->graph);
}

/* Inputs for which the test says no range are ten times as far apart. */
static cleave_status_t widen(equality_t *equality, cleave_error_t *error) {
  for (size_t k = 0; k < equality->output_count; k++) {
    cleave_tensor_release(equality->expected[k]);
    equality->expected[k] = NULL;
  }
  for (size_t k = 0; k < equality->input_count; k++) {
    cleave_tensor_t *wide = NULL;
    bool has_range = k < equality->test->input_count && equality->test->inputs[k].has_range;
    if (!has_range) {
      CLEAVE_TRY(cleave_draw_like(equality->inputs[k], k, WIDER, true, &wide, error));
      cleave_tensor_release(equality->inputs[k]);
      equality->inputs[k] = wide;
      equality->views[k] = cleave_tensor_view(wide);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t compare_wider(equality_t *equality, cleave_text_t *report, cleave_error_t *error) {
  cleave_error_t failure = CLEAVE_ERROR_INIT;
  bool runs = false;
  equality->is_wider = true;
  CLEAVE_TRY(widen(equality, error));
  cleave_status_t status = run_reference(equality, &runs, &failure);
  if (status == CLEAVE_OK && runs) {
    status = run_plan(equality, &failure);
    if (status == CLEAVE_OK) {
      return compare(equality, report, error);
    }
    cleave_text_show(report, "equal: on wider values than normal ones: %s\n", failure.message);
  }
  return status == CLEAVE_ERROR_OUT_OF_MEMORY ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

static void deinit(equality_t *equality) {
  cleave_session_destroy(equality->session);
  for (size_t k = 0; equality->inputs != NULL && k < equality->input_count; k++) {
    cleave_tensor_release(equality->inputs[k]);
  }
  for (size_t k = 0; equality->expected != NULL && k < equality->output_count; k++) {
    cleave_tensor_release(equality->expected[k]);
  }
  cleave_free(equality->inputs);
  cleave_free(equality->expected);
  cleave_free(equality->views);
  cleave_free((void *)equality->pointers);
}

cleave_status_t cleave_rule_equal(const cleave_rule_test_t *test, const cleave_plan_t *plan,
                                  const cleave_rule_check_options_t *options, cleave_text_t *report,
                                  cleave_error_t *error) {
  equality_t equality = {.test = test,
                         .plan = plan,
                         .threads = options == NULL ? 0 : options->threads,
                         .session_options = options == NULL ? NULL : options->session};
  cleave_error_t failure = CLEAVE_ERROR_INIT;
  cleave_status_t status = CLEAVE_OK;
  size_t length = report->length;
  if (plan->graph->inputs.count != plan->source->inputs.count) {
    cleave_text_show(report, "equal: the rules changed the number of inputs from %zu to %zu\n",
                     plan->source->inputs.count, plan->graph->inputs.count);
    return CLEAVE_OK;
  }
  if (!is_small(plan->source) || !is_small(plan->graph)) {
    cleave_text_show(report, "equal: the graph has values of more than %zu MiB, too many to compare\n",
                     DATA_LIMIT >> 20);
    return CLEAVE_OK;
  }
  CLEAVE_TRY_CLEANUP(prepare(&equality, error));
  if (run(&equality, &failure) == CLEAVE_OK) {
    for (uint32_t k = 0; k < cleave_session_note_count(equality.session); k++) {
      cleave_text_show(report, "equal: %s\n", cleave_session_note(equality.session, k));
    }
    CLEAVE_TRY_CLEANUP(compare(&equality, report, error));
    if (report->length == length && is_for_any_values(&equality)) {
      CLEAVE_TRY_CLEANUP(compare_wider(&equality, report, error));
    }
  } else if (failure.status == CLEAVE_ERROR_OUT_OF_MEMORY) {
    status = cleave_error_out_of_memory(error);
  } else {
    cleave_text_show(report, "equal: %s\n", failure.message);
  }
cleanup:
  deinit(&equality);
  return status;
}
