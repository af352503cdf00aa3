// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/sized.h"
#include "cleave/half.h"
#include "formats/onnx/onnx.h"
#include "graph/clone.h"
#include "ops/attribute_view.h"
#include "ops/infer.h"
#include "runtime/model/model.h"
#include "runtime/model/model_gradient.h"
#include "runtime/model/model_internal.h"
#include "train/nodes/form.h"
#include "train/trainer_internal.h"

// ---- making ----

/* The model in inference. */
static cleave_status_t make_base(cleave_trainer_t *trainer, cleave_model_t *model, cleave_error_t *error) {
  cleave_graph_t *graph = NULL;
  const cleave_infer_options_t infer = {.fold = false};
  CLEAVE_TRY(cleave_model_copy_source(model, &graph, error));
  cleave_status_t status = cleave_graph_infer(graph, &infer, NULL, error);
  if (status == CLEAVE_OK) {
    status = cleave_train_to_inference(graph, error);
  }
  if (status != CLEAVE_OK) {
    cleave_graph_destroy(graph);
    return status;
  }
  return cleave_model_create_sharing_take(graph, model, &trainer->base, error);
}

static cleave_status_t bind(cleave_trainer_t *trainer, cleave_error_t *error) {
  const cleave_train_feeds_t *feeds = &trainer->feeds;
  const cleave_tensor_view_t **views = cleave_allocate((size_t)feeds->input_count + 1, sizeof *views);
  CLEAVE_TRY_MEMORY(views, error);
  for (uint32_t k = 0; k < feeds->input_count; k++) {
    views[k] = &feeds->items[k].type;
  }
  cleave_status_t status =
      cleave_model_bind(trainer->base, views, feeds->input_count, &trainer->bound, error);
  cleave_free((void *)views);
  return status;
}

/* The array of the loss, whose type is known now. */
static cleave_status_t finish_loss(cleave_trainer_t *trainer, cleave_error_t *error) {
  if (trainer->loss.array == NULL) {
    return CLEAVE_OK;
  }
  cleave_train_feed_t *feed = &trainer->feeds.items[trainer->feeds.input_count];
  cleave_dtype_t dtype = trainer->input_views[feed->input].dtype;
  CLEAVE_TRY(cleave_train_feed_set_type(feed, dtype, trainer->samples, error));
  return trainer->loss.kind == CLEAVE_TRAIN_LOSS_CROSS_ENTROPY
             ? cleave_train_check_labels(feed, trainer->samples, trainer->loss.classes, error)
             : CLEAVE_OK;
}

static void set_scalars(cleave_trainer_t *trainer) {
  for (uint32_t k = 0; k < CLEAVE_TRAIN_SCALARS; k++) {
    trainer->input_views[trainer->first_scalar + k].data = &trainer->scalars[k];
  }
  if (trainer->share_input != CLEAVE_INDEX_NONE) {
    trainer->input_views[trainer->share_input].data = &trainer->share;
  }
  if (trainer->scale_input != CLEAVE_INDEX_NONE) {
    trainer->input_views[trainer->scale_input].data = &trainer->scaling.scale;
  }
}

/* How many processes train together, and what this one takes of a minibatch. */
static cleave_status_t set_processes(cleave_trainer_t *trainer, cleave_error_t *error) {
  const cleave_communicator_t *communicator = trainer->options.communicator;
  trainer->ranks = communicator == NULL ? 1 : communicator->count;
  trainer->rank = communicator == NULL ? 0 : communicator->rank;
  trainer->batch = trainer->options.batch / trainer->ranks;
  trainer->exchange.communicator = communicator;
  trainer->exchange.limit = (size_t)trainer->options.bucket_bytes;
  return trainer->options.batch % trainer->ranks == 0
             ? CLEAVE_OK
             : cleave_error_set(
                   error, CLEAVE_ERROR_INVALID_ARGUMENT,
                   "batch: expected a multiple of the %d processes that train together, found %lld",
                   (int)trainer->ranks, (long long)trainer->options.batch);
}

static cleave_status_t set_options(cleave_trainer_t *trainer, const cleave_model_t *model,
                                   const cleave_train_options_t *options, cleave_error_t *error) {
  CLEAVE_TRY(cleave_train_check_options(options, error));
  CLEAVE_TRY(cleave_train_copy_options(options, &trainer->arena, &trainer->options, error));
  CLEAVE_TRY(set_processes(trainer, error));
  trainer->session_options.size = sizeof trainer->session_options;
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_session_options_t, options->session, &trainer->session_options, error));
  trainer->steps_per_epoch = trainer->samples->count / options->batch;
  if (trainer->steps_per_epoch == 0) {
    return cleave_error_set_at(error, CLEAVE_ERROR_INVALID_ARGUMENT, trainer->samples->path, 0,
                               "%lld sample%s cannot fill one minibatch of %lld",
                               (long long)trainer->samples->count, CLEAVE_PLURAL(trainer->samples->count),
                               (long long)options->batch);
  }
  trainer->scaling = cleave_train_scaling_start(&trainer->options);
  cleave_partition_request_t rules;
  CLEAVE_TRY(cleave_partition_request_read(options->rules, &rules, error));
  return cleave_train_load_rules(trainer, model->context, &rules, error);
}

/* The feed whose labels decide what the mean of a cross entropy is over; NULL if this process trains alone.
 */
static const cleave_train_feed_t *find_labels(const cleave_trainer_t *trainer) {
  bool are_counted =
      trainer->loss.kind == CLEAVE_TRAIN_LOSS_CROSS_ENTROPY && trainer->share_input != CLEAVE_INDEX_NONE;
  return are_counted ? &trainer->feeds.items[trainer->feeds.input_count] : NULL;
}

static cleave_status_t make(cleave_trainer_t *trainer, cleave_model_t *model,
                            const cleave_train_options_t *options, cleave_error_t *error) {
  CLEAVE_TRY(set_options(trainer, model, options, error));
  trainer->loss = cleave_train_loss_of(&trainer->options);
  CLEAVE_TRY(make_base(trainer, model, error));
  CLEAVE_TRY(cleave_train_feeds_init(&trainer->feeds, trainer->base, trainer->samples, trainer->loss.array,
                                     trainer->batch, error));
  CLEAVE_TRY(bind(trainer, error));
  CLEAVE_TRY(cleave_train_make_step(trainer, error));
  CLEAVE_TRY(finish_loss(trainer, error));
  set_scalars(trainer);
  trainer->plan = (cleave_train_plan_t){.feeds = &trainer->feeds,
                                        .samples = trainer->samples,
                                        .drops = trainer->drops.items,
                                        .drop_count = (uint32_t)trainer->drops.count,
                                        .batch = trainer->batch,
                                        .rank = trainer->rank,
                                        .ranks = trainer->ranks,
                                        .labels = find_labels(trainer),
                                        .seed = trainer->options.seed,
                                        .keep_order = trainer->options.keep_order};
  return cleave_train_reader_create(&trainer->plan, &trainer->reader, error);
}

cleave_status_t cleave_trainer_create(cleave_model_t *model, const cleave_samples_t *samples,
                                      const cleave_train_options_t *options, cleave_trainer_t **out_trainer,
                                      cleave_error_t *error) {
  cleave_train_options_t own;
  *out_trainer = NULL;
  CLEAVE_TRY(cleave_train_read_options(options, &own, error));
  const cleave_communicator_t *communicator = own.communicator;
  cleave_trainer_t *trainer = cleave_allocate_zeroed(1, sizeof *trainer);
  CLEAVE_TRY_MEMORY(trainer, error);
  trainer->samples = samples;
  trainer->recompute.size = sizeof trainer->recompute;
  trainer->options.communicator = communicator;
  cleave_status_t status = communicator == NULL ? CLEAVE_OK : cleave_communicator_check(communicator, error);
  if (status == CLEAVE_OK) {
    status = make(trainer, model, &own, error);
    status = communicator == NULL ? status : cleave_train_agree(trainer, status, error);
  }
  if (status != CLEAVE_OK) {
    cleave_trainer_destroy(trainer);
    return status;
  }
  *out_trainer = trainer;
  return CLEAVE_OK;
}

void cleave_trainer_destroy(cleave_trainer_t *trainer) {
  if (trainer == NULL) {
    return;
  }
  cleave_train_reader_destroy(trainer->reader);
  cleave_train_parts_deinit(trainer);
  cleave_train_program_deinit(&trainer->evaluation);
  for (uint32_t k = 0; k < trainer->feeds.count && trainer->evaluation_data != NULL; k++) {
    cleave_free(trainer->evaluation_data[k]);
  }
  cleave_free((void *)trainer->evaluation_data);
  for (size_t k = 0; k < trainer->carried.count; k++) {
    cleave_tensor_release(trainer->carried.items[k].buffers[0]);
    cleave_tensor_release(trainer->carried.items[k].buffers[1]);
  }
  cleave_array_free(&trainer->carried);
  cleave_array_free(&trainer->drops);
  cleave_array_free(&trainer->history);
  cleave_train_feeds_deinit(&trainer->feeds);
  cleave_model_release(trainer->bound);
  cleave_model_release(trainer->base);
  cleave_rule_files_destroy(trainer->rules);
  cleave_arena_deinit(&trainer->arena);
  cleave_free(trainer);
}

// ---- steps ----

int64_t cleave_trainer_steps_per_epoch(const cleave_trainer_t *trainer) {
  return trainer->steps_per_epoch;
}

int64_t cleave_trainer_step_count(const cleave_trainer_t *trainer) {
  return trainer->steps_per_epoch * trainer->options.epochs;
}

int64_t cleave_trainer_steps_done(const cleave_trainer_t *trainer) {
  return trainer->steps_done;
}

static cleave_train_step_t describe(const cleave_trainer_t *trainer, int64_t index) {
  const cleave_train_record_t *record = &trainer->history.items[index];
  return (cleave_train_step_t){
      .step = index + 1,
      .epoch = index / trainer->steps_per_epoch + 1,
      .loss = record->loss,
      .gradient_norm = record->norm,
      .rate = record->rate,
      .ends_epoch = (index + 1) % trainer->steps_per_epoch == 0,
      .loss_scale = record->scale,
      .is_skipped = cleave_train_is_scaled(&trainer->options) && !isfinite(record->norm)};
}

cleave_status_t cleave_trainer_history(const cleave_trainer_t *trainer, int64_t index,
                                       cleave_train_step_t *out_step, cleave_error_t *error) {
  if (index < 0 || index >= trainer->steps_done) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "step %lld: %lld step%s done",
                            (long long)index, (long long)trainer->steps_done,
                            CLEAVE_PLURAL(trainer->steps_done));
  }
  CLEAVE_TRY(CLEAVE_SIZED_CHECK(cleave_train_step_t, out_step, error));
  const cleave_train_step_t step = describe(trainer, index);
  CLEAVE_SIZED_OUT(cleave_train_step_t, &step, out_step);
  return CLEAVE_OK;
}

static void feed(cleave_trainer_t *trainer) {
  int64_t labels = 0;
  void *const *data = cleave_train_reader_take(trainer->reader, trainer->steps_done, &labels);
  for (uint32_t k = 0; k < trainer->feeds.count; k++) {
    trainer->input_views[trainer->feeds.items[k].input].data = data[k];
  }
  for (uint32_t k = 0; k < trainer->drops.count; k++) {
    trainer->input_views[trainer->first_mask + k].data = data[trainer->feeds.count + k];
  }
  trainer->share = 1.0 / (double)(trainer->plan.labels != NULL ? labels : trainer->ranks);
}

static double read_number(const cleave_trainer_t *trainer, uint32_t output) {
  const cleave_tensor_view_t *view = &trainer->output_views[output];
  return view->dtype == CLEAVE_DTYPE_F64    ? *(const double *)view->data
         : view->dtype == CLEAVE_DTYPE_F32  ? (double)*(const float *)view->data
         : view->dtype == CLEAVE_DTYPE_BF16 ? (double)cleave_bfloat_to_float(*(const uint16_t *)view->data)
                                            : (double)cleave_half_to_float(*(const uint16_t *)view->data);
}

cleave_status_t cleave_trainer_step(cleave_trainer_t *trainer, cleave_train_step_t *out_step,
                                    cleave_error_t *error) {
  int64_t step = trainer->steps_done;
  cleave_train_record_t record = {0};
  CLEAVE_TRY(CLEAVE_SIZED_CHECK(cleave_train_step_t, out_step, error));
  if (step >= cleave_trainer_step_count(trainer)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "all %lld step%s done", (long long)step,
                            CLEAVE_PLURAL(step));
  }
  CLEAVE_TRY(cleave_array_reserve(&trainer->history, 1, error));
  record.rate = cleave_train_rate(&trainer->options, step, trainer->steps_per_epoch);
  record.scale = trainer->scaling.scale;
  cleave_train_scalars(&trainer->options, trainer->scaling.updates, record.rate, record.scale,
                       trainer->scalars);
  feed(trainer);
  cleave_train_point(trainer);
  CLEAVE_TRY(cleave_train_run_parts(trainer, error));
  record.loss = read_number(trainer, CLEAVE_TRAIN_LOSS) / record.scale;
  record.norm = read_number(trainer, CLEAVE_TRAIN_GRADIENT_NORM);
  if (cleave_train_scaling_advance(&trainer->options, record.norm, &trainer->scaling)) {
    trainer->now = 1 - trainer->now;
  }
  trainer->steps_done++;
  cleave_array_push_reserved(&trainer->history, record);
  const cleave_train_step_t report = describe(trainer, step);
  CLEAVE_SIZED_OUT(cleave_train_step_t, &report, out_step);
  return CLEAVE_OK;
}

// ---- what came of it ----

/* Names and tensors of the constants that training changed. */
static uint32_t list_constants(const cleave_trainer_t *trainer, const char **names,
                               cleave_tensor_view_t *views, const cleave_tensor_view_t **pointers) {
  uint32_t count = 0;
  for (size_t k = 0; k < trainer->carried.count; k++) {
    const cleave_train_carried_t *carried = &trainer->carried.items[k];
    if (carried->role < CLEAVE_TRAIN_STATE) {
      names[count] = carried->name;
      views[count] = cleave_tensor_view(carried->buffers[trainer->now]);
      pointers[count] = &views[count];
      count++;
    }
  }
  return count;
}

cleave_status_t cleave_trainer_model(const cleave_trainer_t *trainer, cleave_model_t **out_model,
                                     cleave_error_t *error) {
  size_t most = trainer->carried.count + 1;
  const char **names = cleave_allocate(most, sizeof *names);
  cleave_tensor_view_t *views = cleave_allocate(most, sizeof *views);
  const cleave_tensor_view_t **pointers = cleave_allocate(most, sizeof *pointers);
  cleave_status_t status = CLEAVE_OK;
  *out_model = NULL;
  if (names == NULL || views == NULL || pointers == NULL) {
    status = cleave_error_out_of_memory(error);
  } else {
    uint32_t count = list_constants(trainer, names, views, pointers);
    status = cleave_model_set_constants(trainer->base, names, pointers, count, out_model, error);
  }
  cleave_free((void *)names);
  cleave_free(views);
  cleave_free((void *)pointers);
  return status;
}

static cleave_status_t write_model(const cleave_model_t *model, const char *path, int32_t opset,
                                   cleave_error_t *error) {
  const cleave_infer_options_t infer = {.fold = false};
  const cleave_onnx_write_options_t options = {.opset_version = opset};
  cleave_graph_t *graph = NULL;
  CLEAVE_TRY(cleave_model_copy_source(model, &graph, error));
  cleave_status_t status = cleave_graph_infer(graph, &infer, NULL, error);
  if (status == CLEAVE_OK) {
    status = cleave_onnx_write(path, graph, &options, error);
  }
  cleave_graph_destroy(graph);
  return status;
}

cleave_status_t cleave_trainer_export(const cleave_trainer_t *trainer, const char *path, int32_t opset,
                                      cleave_error_t *error) {
  cleave_model_t *model = NULL;
  CLEAVE_TRY(cleave_trainer_model(trainer, &model, error));
  cleave_status_t status = write_model(model, path, opset, error);
  cleave_model_release(model);
  return status;
}

const cleave_recompute_report_t *cleave_trainer_recompute(const cleave_trainer_t *trainer) {
  return &trainer->recompute;
}

void cleave_trainer_backward(const cleave_trainer_t *trainer, cleave_train_backward_report_t *out_report) {
  CLEAVE_SIZED_OUT(cleave_train_backward_report_t, &trainer->backward, out_report);
}

// ---- for looking at ----

/* Number `number` of the parts with nodes; NULL beyond the last. */
static const cleave_train_program_t *find_part(const cleave_trainer_t *trainer, uint32_t number) {
  for (size_t k = 0; k < trainer->parts.count; k++) {
    if (trainer->parts.items[k].exists && number-- == 0) {
      return &trainer->parts.items[k].program;
    }
  }
  return NULL;
}

uint32_t cleave_trainer_part_count(const cleave_trainer_t *trainer) {
  uint32_t count = 0;
  for (size_t k = 0; k < trainer->parts.count; k++) {
    count += trainer->parts.items[k].exists ? 1 : 0;
  }
  return count;
}

cleave_model_t *cleave_trainer_part_model(const cleave_trainer_t *trainer, uint32_t part) {
  const cleave_train_program_t *program = find_part(trainer, part);
  return program == NULL ? NULL : program->model;
}

const cleave_plan_t *cleave_trainer_part_plan(const cleave_trainer_t *trainer, uint32_t part) {
  const cleave_train_program_t *program = find_part(trainer, part);
  return program == NULL ? NULL : program->plan;
}

cleave_session_t *cleave_trainer_part_session(const cleave_trainer_t *trainer, uint32_t part) {
  const cleave_train_program_t *program = find_part(trainer, part);
  return program == NULL ? NULL : program->session;
}

void cleave_trainer_communication(const cleave_trainer_t *trainer,
                                  cleave_train_communication_t *out_communication) {
  const cleave_exchange_t *exchange = &trainer->exchange;
  const cleave_train_communication_t communication = {
      .buckets = (uint32_t)exchange->buckets.count,
      .bytes = cleave_exchange_bytes(exchange),
      .steps = exchange->buckets.count > 0 ? trainer->exchange_steps : 0,
      .going_ms = (double)exchange->going_ns * 1e-6,
      .waited_ms = (double)exchange->waited_ns * 1e-6};
  CLEAVE_SIZED_OUT(cleave_train_communication_t, &communication, out_communication);
}
