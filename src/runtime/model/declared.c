// SPDX-License-Identifier: Apache-2.0
// What a file declares for its outputs against what inference found: contradictions end the loading, and what
// inference does not know is taken from the file.

#include "runtime/model/bind.h"

static cleave_status_t contradict(const cleave_graph_t *graph, size_t index, cleave_error_t *error) {
  const cleave_declared_shape_t *declared = &graph->declared[index];
  const cleave_value_record_t *record = cleave_graph_value(graph, cleave_graph_output(graph, index));
  cleave_text_t text = {0};
  cleave_text_format(&text, "output '%.100s' is declared as ", cleave_graph_output_name(graph, index));
  cleave_shape_print(graph->dims, declared->rank, declared->dims, &text);
  cleave_text_add(&text, ", inference finds ");
  cleave_shape_print(graph->dims, record->rank, record->dims, &text);
  cleave_text_add(&text, " (--lenient passes over declared shapes)");
  cleave_status_t status =
      cleave_error_set_at(error, CLEAVE_ERROR_SHAPE, cleave_strings_text(&graph->strings, graph->source), 0,
                          "%s", cleave_text_get(&text));
  cleave_text_deinit(&text);
  return status;
}

static cleave_status_t set_dims(cleave_graph_t *graph, size_t index, int32_t rank, const cleave_dim_t *dims,
                                cleave_error_t *error) {
  cleave_value_t value = cleave_graph_output(graph, index);
  cleave_dtype_t dtype = (cleave_dtype_t)cleave_graph_value(graph, value)->dtype;
  return cleave_graph_set_type(graph, value, dtype, rank, dims, error);
}

static cleave_status_t state_output(cleave_graph_t *graph, cleave_graph_t *unfolded, size_t index, bool *more,
                                    cleave_error_t *error) {
  const cleave_declared_shape_t *declared = &graph->declared[index];
  const cleave_value_record_t *record = cleave_graph_value(graph, cleave_graph_output(graph, index));
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  bool is_news = record->rank < 0 && declared->rank >= 0;
  if (declared->rank < 0) {
    return CLEAVE_OK;
  }
  if (record->rank >= 0 && record->rank != declared->rank) {
    return contradict(graph, index, error);
  }
  for (int32_t d = 0; d < declared->rank; d++) {
    dims[d] = record->rank < 0 ? CLEAVE_DIM_UNKNOWN : record->dims[d];
    if (cleave_dim_is_known(dims[d]) && declared->dims[d] != CLEAVE_DIM_UNKNOWN &&
        dims[d] != declared->dims[d]) {
      return contradict(graph, index, error);
    }
    if (dims[d] == CLEAVE_DIM_UNKNOWN && declared->dims[d] != CLEAVE_DIM_UNKNOWN) {
      dims[d] = declared->dims[d];
      is_news = true;
    }
  }
  if (!is_news) {
    return CLEAVE_OK;
  }
  *more = true;
  CLEAVE_TRY(set_dims(graph, index, declared->rank, dims, error));
  return unfolded == NULL ? CLEAVE_OK : set_dims(unfolded, index, declared->rank, dims, error);
}

cleave_status_t cleave_graph_state_declared(cleave_graph_t *graph, cleave_graph_t *unfolded, bool *out_more,
                                            cleave_error_t *error) {
  *out_more = false;
  for (size_t k = 0; graph->declared != NULL && k < graph->outputs.count; k++) {
    CLEAVE_TRY(state_output(graph, unfolded, k, out_more, error));
  }
  return CLEAVE_OK;
}
