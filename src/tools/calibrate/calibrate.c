// SPDX-License-Identifier: Apache-2.0
// Every value is an output of a copy of the graph, so that sessions and rules keep all of them: what runs is
// the model itself, node by node or in regions.
#include "tools/calibrate/calibrate.h"

#include <stdio.h>

#include "graph/clone.h"
#include "runtime/model/bind.h"
#include "runtime/model/model.h"

/* A value that is looked at. */
typedef struct watched {
  cleave_value_t value;
  uint32_t input; /* of the graph, or CLEAVE_INDEX_NONE: it is an output of the copy */
  uint32_t output;
  cleave_histogram_t histogram;
} watched_t;

struct cleave_calibration {
  cleave_calibration_options_t options;
  cleave_graph_t *open;  /* the copy with more outputs */
  cleave_graph_t *bound; /* the same with the sizes of the inputs; NULL: `open` has them */
  cleave_plan_t *plan;   /* NULL: all on cpu */
  cleave_session_t *session;
  CLEAVE_ARRAY(watched_t) values;
  size_t input_count;
};

// ---- making ----

static bool is_watched(const cleave_value_record_t *value) {
  return value->dtype == CLEAVE_DTYPE_F32 && value->tensor == NULL && !value->is_removed &&
         (value->producer != CLEAVE_INDEX_NONE || value->is_input);
}

static cleave_status_t watch(cleave_calibration_t *calibration, watched_t watched, cleave_error_t *error) {
  CLEAVE_TRY(cleave_array_reserve(&calibration->values, 1, error));
  if (calibration->options.method != CLEAVE_CALIBRATION_MINMAX) {
    CLEAVE_TRY(cleave_histogram_init(&watched.histogram, error));
  }
  cleave_array_push_reserved(&calibration->values, watched);
  return CLEAVE_OK;
}

/* Values that nodes make become outputs. */
static cleave_status_t open_values(cleave_calibration_t *calibration, cleave_error_t *error) {
  cleave_graph_t *graph = calibration->open;
  char name[32];
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    watched_t watched = {.value = {k}, .input = CLEAVE_INDEX_NONE, .output = (uint32_t)graph->outputs.count};
    if (is_watched(&graph->values.items[k]) && !graph->values.items[k].is_input) {
      (void)snprintf(name, sizeof name, "range:%u", (unsigned)k);
      CLEAVE_TRY(cleave_graph_add_output(graph, name, watched.value, error));
      CLEAVE_TRY(watch(calibration, watched, error));
    }
  }
  for (uint32_t k = 0; k < (uint32_t)graph->inputs.count; k++) {
    watched_t watched = {.value = graph->inputs.items[k], .input = k};
    if (is_watched(cleave_graph_value(graph, watched.value))) {
      CLEAVE_TRY(watch(calibration, watched, error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t compile(cleave_calibration_t *calibration, const cleave_tensor_view_t *inputs,
                               cleave_error_t *error) {
  const cleave_calibration_options_t *options = &calibration->options;
  const cleave_tensor_view_t **pointers = cleave_allocate(calibration->input_count + 1, sizeof *pointers);
  cleave_status_t status = CLEAVE_OK;
  if (pointers == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (size_t k = 0; k < calibration->input_count; k++) {
    pointers[k] = &inputs[k];
  }
  CLEAVE_TRY_CLEANUP(cleave_graph_bind(calibration->open, pointers, calibration->input_count, NULL,
                                       &calibration->bound, error));
  const cleave_graph_t *graph = calibration->bound != NULL ? calibration->bound : calibration->open;
  if (options->backend != NULL) {
    cleave_partition_request_t request = {.size = sizeof request, .backend = options->backend};
    CLEAVE_TRY_CLEANUP(cleave_graph_partition(graph, &request, NULL, &calibration->plan, NULL, error));
  }
  CLEAVE_TRY_CLEANUP(cleave_session_create_planned(graph, calibration->plan, pointers,
                                                   calibration->input_count, options->session,
                                                   &calibration->session, error));
cleanup:
  cleave_free((void *)pointers);
  return status;
}

cleave_status_t cleave_calibration_create(const cleave_graph_t *graph, const cleave_tensor_view_t *inputs,
                                          size_t count, const cleave_calibration_options_t *options,
                                          cleave_calibration_t **out_calibration, cleave_error_t *error) {
  cleave_calibration_t *calibration = cleave_allocate_zeroed(1, sizeof *calibration);
  *out_calibration = NULL;
  if (calibration == NULL) {
    return cleave_error_out_of_memory(error);
  }
  calibration->options = *options;
  calibration->input_count = count;
  cleave_status_t status = cleave_graph_copy(graph, &calibration->open, error);
  CLEAVE_THEN(status, open_values(calibration, error));
  CLEAVE_THEN(status, compile(calibration, inputs, error));
  CLEAVE_TRY_OR(status, cleave_calibration_destroy(calibration));
  *out_calibration = calibration;
  return CLEAVE_OK;
}

// ---- running ----

static void look_at(watched_t *watched, const cleave_tensor_view_t *view) {
  int64_t count = cleave_view_element_count(view);
  if (count > 0 && view->dtype == CLEAVE_DTYPE_F32) {
    cleave_histogram_add(&watched->histogram, view->data, (size_t)count);
  }
}

cleave_status_t cleave_calibration_run(cleave_calibration_t *calibration, const cleave_tensor_view_t *inputs,
                                       cleave_error_t *error) {
  for (size_t k = 0; k < calibration->input_count; k++) {
    CLEAVE_TRY(cleave_session_set_input(calibration->session, (uint32_t)k, &inputs[k], error));
  }
  CLEAVE_TRY(cleave_session_run(calibration->session, error));
  for (size_t k = 0; k < calibration->values.count; k++) {
    watched_t *watched = &calibration->values.items[k];
    cleave_tensor_view_t view;
    if (watched->input == CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(cleave_session_output(calibration->session, watched->output, &view, error));
    } else {
      view = inputs[watched->input];
    }
    look_at(watched, &view);
  }
  return CLEAVE_OK;
}

// ---- what was found ----

uint32_t cleave_calibration_set(const cleave_calibration_t *calibration, cleave_graph_t *graph) {
  uint32_t count = 0;
  for (size_t k = 0; k < calibration->values.count; k++) {
    const watched_t *watched = &calibration->values.items[k];
    const cleave_histogram_t *histogram = &watched->histogram;
    float low = histogram->min;
    float high = histogram->max;
    if (histogram->seen == 0) {
      continue;
    }
    if (calibration->options.method == CLEAVE_CALIBRATION_PERCENTILE) {
      cleave_histogram_percentile(histogram, calibration->options.percentile, &low, &high);
    } else if (calibration->options.method == CLEAVE_CALIBRATION_ENTROPY) {
      cleave_histogram_entropy(histogram, &low, &high);
    }
    cleave_graph_set_range(graph, watched->value, low, high);
    count++;
  }
  return count;
}

uint64_t cleave_calibration_skipped(const cleave_calibration_t *calibration, cleave_value_t *out_value) {
  uint64_t skipped = 0;
  *out_value = CLEAVE_VALUE_NONE;
  for (size_t k = 0; k < calibration->values.count; k++) {
    const watched_t *watched = &calibration->values.items[k];
    if (skipped == 0 && watched->histogram.skipped > 0) {
      *out_value = watched->value;
    }
    skipped += watched->histogram.skipped;
  }
  return skipped;
}

void cleave_calibration_destroy(cleave_calibration_t *calibration) {
  if (calibration == NULL) {
    return;
  }
  cleave_session_destroy(calibration->session);
  cleave_plan_destroy(calibration->plan);
  for (size_t k = 0; k < calibration->values.count; k++) {
    cleave_histogram_deinit(&calibration->values.items[k].histogram);
  }
  cleave_array_free(&calibration->values);
  cleave_graph_destroy(calibration->bound);
  cleave_graph_destroy(calibration->open);
  cleave_free(calibration);
}
