// SPDX-License-Identifier: Apache-2.0
// Two sessions side by side: they run alternately, equally warm, and their outputs are compared.
#include <math.h>

#include "system/clock.h"
#include "tensor/tensor.h"
#include "tools/watch/watch.h"

/* A tensor over the memory of a view, for comparing. */
static cleave_status_t borrow(const cleave_tensor_view_t *view, cleave_tensor_t **out_tensor,
                              cleave_error_t *error) {
  int64_t count = cleave_view_element_count(view);
  return cleave_tensor_create_borrowed(view, (size_t)count * cleave_dtype_size(view->dtype), NULL, out_tensor,
                                       error);
}

static bool same_type(const cleave_tensor_view_t *a, const cleave_tensor_view_t *b) {
  bool same = a->dtype == b->dtype && a->rank == b->rank;
  for (int32_t d = 0; same && d < a->rank; d++) {
    same = a->dims[d] == b->dims[d];
  }
  return same;
}

static cleave_status_t compare_output(const cleave_watch_measure_t *measure, uint32_t index,
                                      cleave_reload_t *reload, cleave_error_t *error) {
  cleave_tensor_view_t views[2];
  cleave_tensor_t *tensors[2] = {NULL, NULL};
  double difference = (double)INFINITY;
  double relative = (double)INFINITY;
  CLEAVE_TRY(cleave_session_output(measure->before, index, &views[0], error));
  CLEAVE_TRY(cleave_session_output(measure->after, index, &views[1], error));
  if (views[0].dtype == CLEAVE_DTYPE_STRING) {
    return CLEAVE_OK;
  }
  if (same_type(&views[0], &views[1])) {
    cleave_difference_t found;
    cleave_status_t status = borrow(&views[0], &tensors[0], error);
    CLEAVE_THEN(status, borrow(&views[1], &tensors[1], error));
    if (status == CLEAVE_OK) {
      cleave_tensor_compare(tensors[1], tensors[0], 0.0, 0.0, &found);
      difference = found.max_absolute;
      relative = difference / (found.max_expected > 0.0 ? found.max_expected : 1.0);
    }
    cleave_tensor_release(tensors[0]);
    cleave_tensor_release(tensors[1]);
    CLEAVE_TRY(status);
  }
  if (index == 0 || !(difference <= reload->largest_difference)) {
    reload->largest_difference = difference;
    reload->relative_difference = relative;
    reload->largest_output = cleave_graph_output_name(measure->graph, index);
  }
  return CLEAVE_OK;
}

/* Both run once before the first pair, so that both are equally warm. If there is no time for it, the memory
 * of the session after is touched at least, and the first pair stands in for it: *out_warm is false. */
static cleave_status_t warm_up(const cleave_watch_measure_t *measure, bool *out_warm, cleave_error_t *error) {
  uint64_t start = cleave_clock_now();
  CLEAVE_TRY(cleave_session_run(measure->before, error));
  uint64_t now = cleave_clock_now();
  *out_warm = now + 3 * (now - start) <= measure->deadline_ns;
  if (!*out_warm) {
    cleave_session_touch(measure->after);
    return CLEAVE_OK;
  }
  return cleave_session_run(measure->after, error);
}

void cleave_watch_note_times(const cleave_paired_t *paired, cleave_reload_t *reload) {
  cleave_paired_summary_t summary;
  cleave_paired_summarise(paired, &summary);
  reload->runs = paired->count;
  reload->before_ms = summary.first_ms;
  reload->after_ms = summary.second_ms;
  bool has_change = summary.has_interval && !reload->same;
  reload->has_change = has_change;
  reload->change = has_change ? summary.change : 0.0;
  reload->change_low = has_change ? summary.low : 0.0;
  reload->change_high = has_change ? summary.high : 0.0;
}

cleave_status_t cleave_watch_measure(const cleave_watch_measure_t *measure, cleave_reload_t *reload,
                                     cleave_error_t *error) {
  cleave_paired_t *paired = measure->paired;
  bool is_warm = false;
  paired->count = 0;
  CLEAVE_TRY(warm_up(measure, &is_warm, error));
  uint64_t start = cleave_clock_now();
  uint64_t now = start;
  do {
    CLEAVE_TRY(cleave_paired_run(paired, measure->before, measure->after, error));
    now = cleave_clock_now();
  } while (paired->count < CLEAVE_PAIRED_MAX && now + (now - start) / paired->count < measure->deadline_ns);
  reload->largest_output = "";
  for (uint32_t k = 0; k < (uint32_t)measure->graph->outputs.count; k++) {
    CLEAVE_TRY(compare_output(measure, k, reload, error));
  }
  reload->compared = true;
  cleave_watch_note_times(paired, reload);
  paired->count = is_warm ? paired->count : 0;
  return CLEAVE_OK;
}
