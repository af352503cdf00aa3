// SPDX-License-Identifier: Apache-2.0
// Inputs of a rule test, the same in every run, and what values they lead to.
#include "tools/calibrate/calibrate.h"
#include "tools/rule_tests/rule_check.h"

enum { OPEN_SIZE = 2, SEED = 1 };

/* Floats are normal, integers 0 or 1 (valid as ids, masks and indices), unless the test says otherwise. */
cleave_status_t cleave_rule_draw_input(const cleave_rule_test_t *test, const cleave_graph_t *graph,
                                       size_t index, cleave_tensor_t **out_tensor, cleave_error_t *error) {
  const cleave_value_record_t *value = cleave_graph_value(graph, graph->inputs.items[index]);
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  for (int32_t d = 0; d < value->rank; d++) {
    dims[d] = cleave_dim_is_known(value->dims[d]) ? value->dims[d] : OPEN_SIZE;
  }
  cleave_dtype_t dtype = (cleave_dtype_t)value->dtype;
  CLEAVE_TRY(cleave_tensor_create(dtype, value->rank < 0 ? 0 : value->rank, dims, out_tensor, error));
  const cleave_test_input_t *input = index < test->input_count ? &test->inputs[index] : NULL;
  if (input != NULL && input->has_range) {
    cleave_tensor_fill_uniform(*out_tensor, SEED + index, input->low, input->high);
  } else if (cleave_dtype_is_float(dtype)) {
    cleave_tensor_fill_normal(*out_tensor, SEED + index, 0.0, 1.0);
  } else if (dtype != CLEAVE_DTYPE_STRING) {
    cleave_tensor_fill_uniform(*out_tensor, SEED + index, 0.0, 2.0);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_rule_calibrate(const cleave_rule_test_t *test, cleave_graph_t *graph, int32_t threads,
                                      cleave_error_t *error) {
  size_t count = graph->inputs.count;
  cleave_session_options_t session = {.size = sizeof session, .threads = threads};
  const cleave_calibration_options_t options = {.session = &session};
  cleave_calibration_t *calibration = NULL;
  cleave_status_t status = CLEAVE_OK;
  cleave_tensor_t **inputs = cleave_allocate_zeroed(count + 1, sizeof *inputs);
  cleave_tensor_view_t *views = cleave_allocate_zeroed(count + 1, sizeof *views);
  if (inputs == NULL || views == NULL) {
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
  }
  for (size_t k = 0; k < count; k++) {
    CLEAVE_TRY_CLEANUP(cleave_rule_draw_input(test, graph, k, &inputs[k], error));
    views[k] = cleave_tensor_view(inputs[k]);
  }
  CLEAVE_TRY_CLEANUP(cleave_calibration_create(graph, views, count, &options, &calibration, error));
  CLEAVE_TRY_CLEANUP(cleave_calibration_run(calibration, views, error));
  (void)cleave_calibration_set(calibration, graph);
cleanup:
  cleave_calibration_destroy(calibration);
  for (size_t k = 0; inputs != NULL && k < count; k++) {
    cleave_tensor_release(inputs[k]);
  }
  cleave_free(inputs);
  cleave_free(views);
  return status;
}
