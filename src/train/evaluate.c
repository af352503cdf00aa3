// SPDX-License-Identifier: Apache-2.0
// Evaluation: the model in inference with the weights of the step, read where they are. Losses come element
// by element, so that a minibatch that is not full counts with what it has.
#include <string.h>

#include "base/sized.h"
#include "cleave/half.h"
#include "ops/attribute_view.h"
#include "train/nodes/form.h"
#include "train/trainer_internal.h"

// ---- the program ----

static cleave_status_t open_constant(cleave_graph_t *graph, const char *name, cleave_error_t *error) {
  cleave_string_t string = cleave_strings_find(&graph->strings, name, strlen(name));
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    const cleave_value_record_t *record = &graph->values.items[k];
    if (record->name == string.index && record->tensor != NULL && !record->is_removed) {
      cleave_value_t input = CLEAVE_VALUE_NONE;
      return cleave_train_open_constant(graph, (cleave_value_t){k}, &input, error);
    }
  }
  return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "weight '%.100s' is not a constant of the model",
                          name);
}

static cleave_status_t open_constants(const cleave_trainer_t *trainer, cleave_graph_t *graph,
                                      cleave_error_t *error) {
  for (size_t k = 0; k < trainer->carried.count; k++) {
    if (trainer->carried.items[k].role < CLEAVE_TRAIN_STATE) {
      CLEAVE_TRY(open_constant(graph, trainer->carried.items[k].name, error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t make_program(cleave_trainer_t *trainer, cleave_error_t *error) {
  cleave_train_loss_t loss;
  cleave_graph_t *graph = NULL;
  cleave_graph_t *made = NULL;
  CLEAVE_TRY(cleave_train_start_graph(trainer, true, &loss, &graph, error));
  cleave_status_t status = open_constants(trainer, graph, error);
  if (status != CLEAVE_OK) {
    cleave_graph_destroy(graph);
    return status;
  }
  const cleave_value_t outputs[] = {loss.value, loss.scores};
  CLEAVE_TRY(
      cleave_train_take_outputs(graph, outputs, cleave_value_exists(loss.scores) ? 2 : 1, &made, error));
  return cleave_train_compile_take(trainer, made, trainer->bound, &trainer->evaluation, error);
}

static cleave_status_t make_data(cleave_trainer_t *trainer, cleave_error_t *error) {
  trainer->evaluation_data =
      cleave_allocate_zeroed((size_t)trainer->feeds.count + 1, sizeof *trainer->evaluation_data);
  CLEAVE_TRY_MEMORY(trainer->evaluation_data, error);
  for (uint32_t k = 0; k < trainer->feeds.count; k++) {
    const cleave_train_feed_t *feed = &trainer->feeds.items[k];
    cleave_tensor_view_t view = feed->type;
    trainer->evaluation_data[k] = cleave_allocate_aligned(feed->bytes + 1);
    CLEAVE_TRY_MEMORY(trainer->evaluation_data[k], error);
    view.data = trainer->evaluation_data[k];
    CLEAVE_TRY(cleave_session_set_input(trainer->evaluation.session, feed->input, &view, error));
  }
  return CLEAVE_OK;
}

/* The weights and statistics of now. */
static cleave_status_t point(cleave_trainer_t *trainer, cleave_error_t *error) {
  uint32_t input = trainer->feeds.count;
  for (size_t k = 0; k < trainer->carried.count; k++) {
    const cleave_train_carried_t *carried = &trainer->carried.items[k];
    if (carried->role < CLEAVE_TRAIN_STATE) {
      cleave_tensor_view_t view = cleave_tensor_view(carried->buffers[trainer->now]);
      CLEAVE_TRY(cleave_session_set_input(trainer->evaluation.session, input++, &view, error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t prepare(cleave_trainer_t *trainer, cleave_error_t *error) {
  if (trainer->evaluation.session == NULL) {
    cleave_train_program_deinit(&trainer->evaluation);
    CLEAVE_TRY(make_program(trainer, error));
  }
  if (trainer->evaluation_data == NULL) {
    CLEAVE_TRY(make_data(trainer, error));
  }
  return point(trainer, error);
}

// ---- sums ----

typedef struct sums {
  double loss;
  int64_t losses; /* elements that counted */
  int64_t labels;
  int64_t right;
} sums_t;

static double element(const cleave_tensor_view_t *view, int64_t index) {
  switch (view->dtype) {
    case CLEAVE_DTYPE_F64: return ((const double *)view->data)[index];
    case CLEAVE_DTYPE_F32: return (double)((const float *)view->data)[index];
    case CLEAVE_DTYPE_F16: return (double)cleave_half_to_float(((const uint16_t *)view->data)[index]);
    default: return (double)cleave_bfloat_to_float(((const uint16_t *)view->data)[index]);
  }
}

static int64_t find_class(const cleave_tensor_view_t *scores, int64_t first, int64_t stride,
                          int64_t classes) {
  int64_t best = 0;
  for (int64_t c = 1; c < classes; c++) {
    best = element(scores, first + c * stride) > element(scores, first + best * stride) ? c : best;
  }
  return best;
}

/* Labels of the first `rows` samples: how many there are, and how many have the largest score. */
static void count_labels(const cleave_train_loss_t *loss, const cleave_tensor_view_t *scores,
                         const int64_t *labels, int64_t rows, sums_t *sums) {
  int64_t inner = 1;
  int64_t outer = 1;
  for (int32_t d = 0; d < scores->rank; d++) {
    outer *= d < loss->class_axis ? scores->dims[d] : 1;
    inner *= d > loss->class_axis ? scores->dims[d] : 1;
  }
  outer = outer / scores->dims[0] * rows;
  for (int64_t o = 0; o < outer; o++) {
    for (int64_t i = 0; i < inner; i++) {
      int64_t label = labels[o * inner + i];
      if (label != CLEAVE_TRAIN_IGNORED) {
        int64_t first = o * loss->classes * inner + i;
        sums->labels++;
        sums->right += find_class(scores, first, inner, loss->classes) == label ? 1 : 0;
      }
    }
  }
}

static cleave_status_t add_up(const cleave_trainer_t *trainer, int64_t rows, sums_t *sums,
                              cleave_error_t *error) {
  cleave_tensor_view_t loss;
  cleave_tensor_view_t scores;
  CLEAVE_TRY(cleave_session_output(trainer->evaluation.session, 0, &loss, error));
  int64_t count = cleave_view_element_count(&loss);
  if (trainer->loss.kind != CLEAVE_TRAIN_LOSS_VALUE) {
    count = count / trainer->batch * rows;
  }
  for (int64_t k = 0; k < count; k++) {
    sums->loss += element(&loss, k);
  }
  if (trainer->loss.kind != CLEAVE_TRAIN_LOSS_CROSS_ENTROPY) {
    sums->losses += count;
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_session_output(trainer->evaluation.session, 1, &scores, error));
  int64_t before = sums->labels;
  count_labels(&trainer->loss, &scores, trainer->evaluation_data[trainer->feeds.input_count], rows, sums);
  sums->losses += sums->labels - before;
  return CLEAVE_OK;
}

// ---- runs ----

/* Minibatch after minibatch, in the order of the samples, by turns with other processes. The last one is
 * filled up with its last sample. */
static cleave_status_t run(const cleave_trainer_t *trainer, const cleave_train_feeds_t *feeds,
                           const cleave_samples_t *samples, sums_t *sums, cleave_error_t *error) {
  int64_t batch = trainer->batch;
  bool is_whole = trainer->loss.kind == CLEAVE_TRAIN_LOSS_VALUE;
  int64_t *rows = cleave_allocate((size_t)batch, sizeof *rows);
  cleave_status_t status = rows == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  for (int64_t first = trainer->rank * batch; first < samples->count && status == CLEAVE_OK;
       first += trainer->ranks * batch) {
    int64_t count = samples->count - first < batch ? samples->count - first : batch;
    if (count < batch && is_whole) {
      break;
    }
    for (int64_t k = 0; k < batch; k++) {
      rows[k] = samples->first + first + (k < count ? k : count - 1);
    }
    for (uint32_t k = 0; k < feeds->count; k++) {
      cleave_train_feed_fill(&feeds->items[k], rows, batch, trainer->evaluation_data[k]);
    }
    status = cleave_session_run(trainer->evaluation.session, error);
    if (status == CLEAVE_OK) {
      status = add_up(trainer, count, sums, error);
    }
  }
  cleave_free(rows);
  return status;
}

/* Over all processes. */
static cleave_status_t sum_up(const cleave_communicator_t *communicator, sums_t *sums,
                              cleave_error_t *error) {
  int64_t counts[] = {sums->losses, sums->labels, sums->right};
  CLEAVE_TRY(cleave_communicator_sum(communicator, CLEAVE_DTYPE_F64, &sums->loss, 1, error));
  CLEAVE_TRY(cleave_communicator_sum(communicator, CLEAVE_DTYPE_I64, counts, 3, error));
  sums->losses = counts[0];
  sums->labels = counts[1];
  sums->right = counts[2];
  return CLEAVE_OK;
}

static cleave_status_t check_samples(const cleave_trainer_t *trainer, const cleave_train_feeds_t *feeds,
                                     const cleave_samples_t *samples, cleave_error_t *error) {
  if (trainer->loss.kind == CLEAVE_TRAIN_LOSS_VALUE && samples->count < trainer->batch) {
    return cleave_error_set_at(
        error, CLEAVE_ERROR_INVALID_ARGUMENT, samples->path, 0,
        "%lld sample%s cannot fill one minibatch of %lld, which the loss of the model is "
        "of",
        (long long)samples->count, CLEAVE_PLURAL(samples->count), (long long)trainer->batch);
  }
  return trainer->loss.kind == CLEAVE_TRAIN_LOSS_CROSS_ENTROPY
             ? cleave_train_check_labels(&feeds->items[feeds->input_count], samples, trainer->loss.classes,
                                         error)
             : CLEAVE_OK;
}

cleave_status_t cleave_trainer_evaluate(cleave_trainer_t *trainer, const cleave_samples_t *samples,
                                        cleave_evaluation_t *out_evaluation, cleave_error_t *error) {
  cleave_train_feeds_t feeds = {0};
  sums_t sums = {0};
  CLEAVE_TRY(CLEAVE_SIZED_CHECK(cleave_evaluation_t, out_evaluation, error));
  cleave_status_t status = cleave_train_feeds_for(&trainer->feeds, samples, &feeds, error);
  if (status == CLEAVE_OK) {
    status = check_samples(trainer, &feeds, samples, error);
  }
  if (status == CLEAVE_OK) {
    status = prepare(trainer, error);
  }
  if (status == CLEAVE_OK) {
    status = run(trainer, &feeds, samples, &sums, error);
  }
  cleave_train_feeds_deinit(&feeds);
  if (status == CLEAVE_OK && trainer->options.communicator != NULL) {
    status = sum_up(trainer->options.communicator, &sums, error);
  }
  CLEAVE_TRY(status);
  bool is_whole = trainer->loss.kind == CLEAVE_TRAIN_LOSS_VALUE;
  int64_t batch = trainer->batch;
  const cleave_evaluation_t evaluation = {
      .samples = is_whole ? samples->count / batch * batch : samples->count,
      .loss = sums.losses > 0 ? sums.loss / (double)sums.losses : 0.0,
      .has_accuracy = trainer->loss.kind == CLEAVE_TRAIN_LOSS_CROSS_ENTROPY,
      .accuracy = sums.labels > 0 ? (double)sums.right / (double)sums.labels : 0.0};
  CLEAVE_SIZED_OUT(cleave_evaluation_t, &evaluation, out_evaluation);
  return CLEAVE_OK;
}
