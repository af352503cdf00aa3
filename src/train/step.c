// SPDX-License-Identifier: Apache-2.0
// The graph of a step. Its inputs, in order: those of the model, the loss's array, share and scale of the
// loss, running statistics, masks of Dropout, weights, their states, numbers. Its outputs: the loss, the
// norm, and what comes of statistics, weights and states. With other processes, loss, statistics and
// gradients are summed: the graph is cut there.
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "graph/clone.h"
#include "ops/attribute_view.h"
#include "runtime/model/model.h"
#include "runtime/model/model_gradient.h"
#include "train/nodes/form.h"
#include "train/trainer_internal.h"

static const char LOSS_NAME[] = "training loss";

typedef struct making {
  cleave_trainer_t *trainer;
  cleave_train_form_t form;
  cleave_train_loss_t loss;
  cleave_model_t *forward;  /* in training, with the loss */
  cleave_model_t *backward; /* the same with gradients */
  uint32_t output_count;    /* of the model */
  uint32_t first_norm;      /* input */
  uint32_t first_weight;    /* input */
  CLEAVE_ARRAY(cleave_train_weight_t) weights;
  cleave_graph_t *graph;     /* the whole step */
  cleave_value_t loss_value; /* output of the step */
  cleave_value_t *norm_next; /* by norm: outputs of the step */
  uint32_t *buckets;         /* by weight: of its gradient */
  cleave_train_sums_t sums;
} making_t;

// ---- which weights ----

static bool is_wanted(const cleave_train_options_t *options, const char *name, bool *matched) {
  bool wanted = options->weight_count == 0;
  for (size_t k = 0; k < options->weight_count; k++) {
    bool matches = fnmatch(options->weights[k], name, 0) == 0;
    matched[k] = matched[k] || matches;
    wanted = wanted || matches;
  }
  return wanted;
}

/* Constants that are not to be trained lose their names: gradients are asked for by name. */
static cleave_status_t choose_weights(cleave_graph_t *graph, const cleave_train_options_t *options,
                                      cleave_error_t *error) {
  bool *matched = cleave_allocate_zeroed(options->weight_count + 1, sizeof *matched);
  CLEAVE_TRY_MEMORY(matched, error);
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph) && status == CLEAVE_OK; k++) {
    const cleave_value_record_t *record = &graph->values.items[k];
    if (record->tensor != NULL && !record->is_removed && record->rank > 0 &&
        cleave_dtype_is_float((cleave_dtype_t)record->dtype) &&
        !is_wanted(options, cleave_value_name(graph, (cleave_value_t){k}), matched)) {
      status = cleave_graph_set_value_name(graph, (cleave_value_t){k}, "", error);
    }
  }
  for (size_t k = 0; k < options->weight_count && status == CLEAVE_OK; k++) {
    if (!matched[k]) {
      status =
          cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                           "weights '%.100s': no floating-point constant has this name", options->weights[k]);
    }
  }
  cleave_free(matched);
  return status;
}

// ---- forward and backward ----

static cleave_status_t add_outputs(making_t *making, cleave_graph_t *graph, cleave_error_t *error) {
  making->output_count = (uint32_t)graph->outputs.count;
  CLEAVE_TRY(cleave_graph_add_output(graph, LOSS_NAME, making->loss.value, error));
  for (size_t k = 0; k < making->form.norms.count; k++) {
    const cleave_train_norm_t *norm = &making->form.norms.items[k];
    CLEAVE_TRY(cleave_graph_add_output(graph, cleave_value_name(graph, norm->next), norm->next, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t add_drops(making_t *making, const cleave_graph_t *graph, cleave_error_t *error) {
  for (size_t k = 0; k < making->form.masks.count; k++) {
    const cleave_train_mask_t *mask = &making->form.masks.items[k];
    const cleave_value_record_t *record = cleave_graph_value(graph, mask->input);
    cleave_train_drop_t drop = {.ratio = mask->ratio};
    if (!cleave_shape_element_count(record->rank, record->dims, &drop.count)) {
      return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                              "a Dropout of training has data whose size is known only at run time");
    }
    CLEAVE_ARRAY_PUSH(&making->trainer->drops, drop, error);
  }
  return CLEAVE_OK;
}

static cleave_status_t to_training(making_t *making, cleave_graph_t *graph, cleave_error_t *error) {
  const cleave_train_options_t *options = &making->trainer->options;
  making->first_norm = (uint32_t)graph->inputs.count;
  CLEAVE_TRY(
      cleave_train_to_training(graph, !options->freeze_norms, !options->no_dropout, &making->form, error));
  making->trainer->first_mask = making->first_norm + (uint32_t)making->form.norms.count;
  making->first_weight = (uint32_t)graph->inputs.count;
  CLEAVE_TRY(choose_weights(graph, options, error));
  CLEAVE_TRY(add_drops(making, graph, error));
  return add_outputs(making, graph, error);
}

/* The number of an input; CLEAVE_INDEX_NONE if it is none. */
static uint32_t input_of(const cleave_graph_t *graph, cleave_value_t value) {
  for (uint32_t k = (uint32_t)graph->inputs.count; k-- > 0 && cleave_value_exists(value);) {
    if (graph->inputs.items[k].index == value.index) {
      return k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

/* Reports who made gradients of regions. */
static cleave_status_t report_backward(cleave_trainer_t *trainer, const cleave_model_t *model,
                                       cleave_error_t *error) {
  uint32_t count = 0;
  const cleave_backward_region_t *regions = cleave_model_backward(model, &count);
  cleave_train_backward_report_t *report = &trainer->backward;
  *report = (cleave_train_backward_report_t){0};
  for (uint32_t k = 0; k < count; k++) {
    const cleave_backward_region_t *region = &regions[k];
    report->by_backends += region->reason == NULL ? 1 : 0;
    report->by_rules += region->reason != NULL && region->name != NULL ? 1 : 0;
    if (region->reason != NULL && report->reason == NULL) {
      cleave_text_t text = {0};
      cleave_text_format(&text, "%s%s%s: %s", region->name == NULL ? "" : region->name,
                         region->name == NULL ? "" : ": ", region->backend, region->reason);
      report->reason = cleave_arena_copy_text(&trainer->arena, cleave_text_get(&text), text.length);
      cleave_text_deinit(&text);
      CLEAVE_TRY_MEMORY(report->reason, error);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t make_backward(making_t *making, cleave_error_t *error) {
  cleave_graph_t *graph = NULL;
  const cleave_gradient_order_t order = {.loss = LOSS_NAME,
                                         .open = true,
                                         .list = cleave_rule_files_list(making->trainer->rules),
                                         .recompute = making->trainer->options.recompute,
                                         .out_recompute = &making->trainer->recompute};
  CLEAVE_TRY(cleave_train_start_graph(making->trainer, false, &making->loss, &graph, error));
  making->trainer->loss = making->loss;
  making->trainer->share_input = input_of(graph, making->loss.share);
  making->trainer->scale_input = input_of(graph, making->loss.scale);
  cleave_status_t status = to_training(making, graph, error);
  if (status != CLEAVE_OK) {
    cleave_graph_destroy(graph);
    return status;
  }
  CLEAVE_TRY(cleave_model_create_sharing_take(graph, making->trainer->bound, &making->forward, error));
  CLEAVE_TRY(cleave_model_gradient_by(making->forward, &order, &making->backward, error));
  return report_backward(making->trainer, making->backward, error);
}

// ---- the update ----

static cleave_status_t check_weight(const cleave_graph_t *graph, cleave_value_t value,
                                    cleave_error_t *error) {
  cleave_dtype_t dtype = (cleave_dtype_t)cleave_graph_value(graph, value)->dtype;
  if (dtype != CLEAVE_DTYPE_F32 && dtype != CLEAVE_DTYPE_F64) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                            "weight '%.100s' is of %s: weights of float32 and float64 are trained; convert "
                            "the model, or leave this weight out",
                            cleave_value_name(graph, value), cleave_dtype_name(dtype));
  }
  return CLEAVE_OK;
}

/* An input of the type of another value. */
static cleave_status_t add_input_like(cleave_graph_t *graph, const char *name, cleave_value_t like,
                                      cleave_value_t *out_value, cleave_error_t *error) {
  const cleave_value_record_t *record = cleave_graph_value(graph, like);
  return cleave_graph_add_input(graph, name, (cleave_dtype_t)record->dtype, record->rank, record->dims,
                                out_value, error);
}

static cleave_status_t add_weights(making_t *making, cleave_graph_t *graph, cleave_error_t *error) {
  uint32_t first_gradient = making->output_count + 1 + (uint32_t)making->form.norms.count;
  uint32_t count = (uint32_t)graph->outputs.count - first_gradient;
  uint32_t states = cleave_train_state_count(making->trainer->options.optimizer);
  for (uint32_t k = 0; k < count; k++) {
    cleave_train_weight_t weight = {.value = graph->inputs.items[making->first_weight + k],
                                    .gradient = cleave_graph_output(graph, first_gradient + k)};
    CLEAVE_TRY(check_weight(graph, weight.value, error));
    CLEAVE_ARRAY_PUSH(&making->weights, weight, error);
  }
  for (uint32_t k = 0; k < count * states; k++) {
    cleave_train_weight_t *weight = &making->weights.items[k % count];
    char name[160];
    (void)snprintf(name, sizeof name, "state%u(%.120s)", (unsigned)(k / count),
                   cleave_value_name(graph, weight->value));
    CLEAVE_TRY(add_input_like(graph, name, weight->value, &weight->state[k / count], error));
  }
  return CLEAVE_OK;
}

static cleave_status_t add_update(making_t *making, cleave_graph_t *graph, cleave_value_t *out_norm,
                                  cleave_error_t *error) {
  static const char *const names[CLEAVE_TRAIN_SCALARS] = {"training rate", "training root", "training keep",
                                                          "training unscale"};
  cleave_value_t scalars[CLEAVE_TRAIN_SCALARS];
  cleave_editor_t editor;
  making->trainer->first_scalar = (uint32_t)graph->inputs.count;
  for (int k = 0; k < CLEAVE_TRAIN_SCALARS; k++) {
    CLEAVE_TRY(cleave_graph_add_input(graph, names[k], CLEAVE_DTYPE_F64, 0, NULL, &scalars[k], error));
  }
  cleave_editor_init(&editor, graph, NULL);
  cleave_status_t status =
      cleave_train_add_updates(&editor, &making->trainer->options, scalars, making->weights.items,
                               making->weights.count, out_norm, error);
  cleave_editor_deinit(&editor);
  return status;
}

/* Lists the results of forward and backward: loss, statistics, gradients, summed over processes. */
static cleave_status_t list_results(making_t *making, cleave_error_t *error) {
  cleave_graph_t *graph = making->graph;
  size_t norms = making->form.norms.count;
  making->norm_next = cleave_allocate(norms + 1, sizeof *making->norm_next);
  CLEAVE_TRY_MEMORY(making->norm_next, error);
  making->loss_value = cleave_graph_output(graph, making->output_count);
  for (size_t k = 0; k < norms; k++) {
    making->norm_next[k] = cleave_graph_output(graph, making->output_count + 1 + k);
  }
  CLEAVE_TRY(add_weights(making, graph, error));
  making->buckets = cleave_allocate_zeroed(making->weights.count + 1, sizeof *making->buckets);
  CLEAVE_TRY_MEMORY(making->buckets, error);
  making->sums.processes = making->trainer->ranks;
  making->sums.exchange = &making->trainer->exchange;
  making->sums.loss = &making->loss_value;
  making->sums.norms = making->norm_next;
  making->sums.norm_count = norms;
  making->sums.weights = making->weights.items;
  making->sums.weight_count = making->weights.count;
  making->sums.buckets = making->buckets;
  return making->trainer->options.communicator == NULL ? CLEAVE_OK
                                                       : cleave_train_add_sums(graph, &making->sums, error);
}

static void add_output(cleave_train_cut_t *cut, cleave_value_t *outputs, uint32_t *buckets,
                       cleave_value_t value, uint32_t bucket) {
  outputs[cut->output_count] = value;
  buckets[cut->output_count++] = bucket;
}

/* The outputs of the step: loss, norm, then those of `carried` in order. */
static void list_outputs(const making_t *making, cleave_value_t norm, cleave_train_cut_t *cut,
                         cleave_value_t *outputs, uint32_t *buckets) {
  uint32_t states = cleave_train_state_count(making->trainer->options.optimizer);
  add_output(cut, outputs, buckets, making->loss_value, CLEAVE_INDEX_NONE);
  add_output(cut, outputs, buckets, norm, CLEAVE_INDEX_NONE);
  for (size_t k = 0; k < making->form.norms.count; k++) {
    add_output(cut, outputs, buckets, making->norm_next[k], CLEAVE_INDEX_NONE);
  }
  for (size_t k = 0; k < making->weights.count; k++) {
    add_output(cut, outputs, buckets, making->weights.items[k].next, making->buckets[k]);
  }
  for (uint32_t s = 0; s < states; s++) {
    for (size_t k = 0; k < making->weights.count; k++) {
      add_output(cut, outputs, buckets, making->weights.items[k].next_state[s], making->buckets[k]);
    }
  }
}

static cleave_status_t make_parts(making_t *making, cleave_value_t norm, cleave_error_t *error) {
  size_t most = 2 + making->form.norms.count + (1 + CLEAVE_TRAIN_STATES) * making->weights.count;
  cleave_value_t *outputs = cleave_allocate(most, sizeof *outputs);
  uint32_t *buckets = cleave_allocate(most, sizeof *buckets);
  cleave_train_cut_t cut = {.graph = making->graph,
                            .origin = making->backward,
                            .outputs = outputs,
                            .buckets = buckets,
                            .sums = making->sums.items.items};
  cleave_status_t status = CLEAVE_OK;
  if (outputs == NULL || buckets == NULL) {
    status = cleave_error_out_of_memory(error);
  } else {
    list_outputs(making, norm, &cut, outputs, buckets);
    status = cleave_train_make_parts(making->trainer, &cut, error);
  }
  cleave_free(outputs);
  cleave_free(buckets);
  return status;
}

static cleave_status_t make_program(making_t *making, cleave_error_t *error) {
  cleave_value_t norm = CLEAVE_VALUE_NONE;
  CLEAVE_TRY(cleave_graph_copy(cleave_model_graph(making->backward), &making->graph, error));
  CLEAVE_TRY(list_results(making, error));
  CLEAVE_TRY(add_update(making, making->graph, &norm, error));
  return make_parts(making, norm, error);
}

// ---- what is carried ----

static cleave_status_t fill_buffers(cleave_train_carried_t *carried, const cleave_tensor_t *constant,
                                    const cleave_tensor_view_t *type, cleave_error_t *error) {
  for (int k = 0; k < 2; k++) {
    CLEAVE_TRY(cleave_tensor_create(type->dtype, type->rank, type->dims, &carried->buffers[k], error));
  }
  if (constant != NULL) {
    memcpy(carried->buffers[0]->data, constant->data, constant->bytes);
  }
  return CLEAVE_OK;
}

/* The constant of the model that has this name: alone, or its new value could not be told from others'. */
static cleave_status_t find_constant(const cleave_graph_t *graph, const char *name,
                                     const cleave_tensor_t **out_tensor, cleave_error_t *error) {
  cleave_string_t string = cleave_strings_find(&graph->strings, name, strlen(name));
  *out_tensor = NULL;
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    const cleave_value_record_t *record = &graph->values.items[k];
    if (record->name != string.index || record->tensor == NULL || record->is_removed) {
      continue;
    }
    if (*out_tensor != NULL) {
      return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                              "weight '%.100s': several constants of the model have this name; give them "
                              "names of their own in the file",
                              name);
    }
    *out_tensor = record->tensor;
  }
  return *out_tensor != NULL ? CLEAVE_OK
                             : cleave_error_set(error, CLEAVE_ERROR_INTERNAL,
                                                "weight '%.100s' is not a constant of the model", name);
}

static cleave_status_t carry(making_t *making, const cleave_graph_t *source, uint32_t input, int role,
                             const char *name, cleave_error_t *error) {
  cleave_trainer_t *trainer = making->trainer;
  const cleave_tensor_t *constant = NULL;
  cleave_train_carried_t carried = {
      .role = role, .input = input, .output = 2 + (uint32_t)trainer->carried.count};
  name = name != NULL ? name : cleave_value_name(making->graph, making->graph->inputs.items[input]);
  carried.name = cleave_arena_copy_text(&trainer->arena, name, strlen(name));
  CLEAVE_TRY_MEMORY(carried.name, error);
  if (role < CLEAVE_TRAIN_STATE) {
    CLEAVE_TRY(find_constant(source, name, &constant, error));
  }
  CLEAVE_TRY(cleave_array_reserve(&trainer->carried, 1, error));
  cleave_array_push_reserved(&trainer->carried, carried);
  return fill_buffers(&trainer->carried.items[trainer->carried.count - 1], constant,
                      &trainer->input_views[input], error);
}

static cleave_status_t carry_all(making_t *making, const cleave_graph_t *source, cleave_error_t *error) {
  uint32_t weights = (uint32_t)making->weights.count;
  uint32_t states = cleave_train_state_count(making->trainer->options.optimizer);
  for (uint32_t k = 0; k < making->form.norms.count; k++) {
    CLEAVE_TRY(carry(making, source, making->first_norm + k, CLEAVE_TRAIN_NORM, NULL, error));
  }
  for (uint32_t k = 0; k < weights; k++) {
    CLEAVE_TRY(carry(making, source, making->first_weight + k, CLEAVE_TRAIN_WEIGHT, NULL, error));
  }
  for (uint32_t k = 0; k < states * weights; k++) {
    const char *name = making->trainer->carried.items[making->form.norms.count + k % weights].name;
    CLEAVE_TRY(carry(making, source, making->first_weight + weights + k,
                     CLEAVE_TRAIN_STATE + (int)(k / weights), name, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t make(making_t *making, cleave_error_t *error) {
  cleave_graph_t *source = NULL;
  CLEAVE_TRY(make_backward(making, error));
  CLEAVE_TRY(make_program(making, error));
  CLEAVE_TRY(cleave_model_copy_source(making->trainer->base, &source, error));
  cleave_status_t status = carry_all(making, source, error);
  cleave_graph_destroy(source);
  return status;
}

cleave_status_t cleave_train_make_step(cleave_trainer_t *trainer, cleave_error_t *error) {
  making_t making = {.trainer = trainer};
  cleave_status_t status = make(&making, error);
  cleave_train_form_deinit(&making.form);
  cleave_array_free(&making.weights);
  cleave_array_free(&making.sums.items);
  cleave_free(making.norm_next);
  cleave_free(making.buckets);
  cleave_graph_destroy(making.graph);
  cleave_model_release(making.forward);
  cleave_model_release(making.backward);
  return status;
}

void cleave_train_point(cleave_trainer_t *trainer) {
  for (size_t k = 0; k < trainer->carried.count; k++) {
    const cleave_train_carried_t *carried = &trainer->carried.items[k];
    trainer->input_views[carried->input] = cleave_tensor_view(carried->buffers[trainer->now]);
    trainer->output_views[carried->output] = cleave_tensor_view(carried->buffers[1 - trainer->now]);
  }
}
