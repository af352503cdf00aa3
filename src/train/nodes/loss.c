// SPDX-License-Identifier: Apache-2.0
#include "train/nodes/loss.h"

#include <string.h>

#include "graph/print.h"
#include "ops/ops.h"
#include "runtime/model/model_gradient.h"
#include "train/nodes/build.h"

cleave_train_loss_t cleave_train_loss_of(const cleave_train_options_t *options) {
  cleave_train_loss_t loss = {.kind = CLEAVE_TRAIN_LOSS_VALUE,
                              .value = CLEAVE_VALUE_NONE,
                              .scores = CLEAVE_VALUE_NONE,
                              .input = CLEAVE_VALUE_NONE,
                              .share = CLEAVE_VALUE_NONE,
                              .scale = CLEAVE_VALUE_NONE};
  if (strcmp(options->loss, "cross_entropy") == 0) {
    loss.kind = CLEAVE_TRAIN_LOSS_CROSS_ENTROPY;
    loss.array = "labels";
  } else if (strcmp(options->loss, "mse") == 0) {
    loss.kind = CLEAVE_TRAIN_LOSS_MSE;
    loss.array = "targets";
  }
  return loss;
}

/* "array 'labels' int64[8, 3] does not fit scores float32[8, 10]: expected ..." */
static cleave_status_t fail_shape(const cleave_graph_t *graph, const cleave_train_loss_t *loss,
                                  const cleave_tensor_view_t *target, cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_text_format(&text, "array '%s' is ", loss->array);
  cleave_type_print(NULL, target->dtype, target->rank, target->dims, &text);
  cleave_text_format(&text, " in a minibatch, and the scores '%.100s' are ",
                     cleave_value_name(graph, loss->scores));
  cleave_value_type_print(graph, loss->scores, &text);
  cleave_text_add(&text, loss->kind == CLEAVE_TRAIN_LOSS_MSE
                             ? ": expected the same shape"
                             : ": expected integers of the same shape without the dimension of the classes");
  cleave_status_t status = cleave_error_set(error, CLEAVE_ERROR_SHAPE, "%s", cleave_text_get(&text));
  cleave_text_deinit(&text);
  return status;
}

// ---- cross entropy ----

/* Are the dims of the labels those of the scores without axis `axis`? */
static bool fits_without(const cleave_value_record_t *scores, const cleave_tensor_view_t *labels,
                         int32_t axis) {
  if (labels->rank != scores->rank - 1) {
    return false;
  }
  for (int32_t k = 0; k < labels->rank; k++) {
    if (labels->dims[k] != scores->dims[k < axis ? k : k + 1]) {
      return false;
    }
  }
  return true;
}

/* Scores that were made by a Softmax over the classes: what it was made of. */
static void look_behind_softmax(const cleave_graph_t *graph, cleave_train_loss_t *loss) {
  cleave_node_t node = cleave_value_producer(graph, loss->scores);
  if (cleave_node_exists(node) && cleave_node_op(graph, node)->id == CLEAVE_OP_Softmax) {
    int64_t axis = cleave_op_int(graph, node, "axis", -1);
    axis += axis < 0 ? cleave_graph_value(graph, loss->scores)->rank : 0;
    loss->scores = axis == loss->class_axis ? cleave_node_input(graph, node, 0) : loss->scores;
  }
}

static cleave_value_t cross_entropy(cleave_train_build_t *build, const cleave_train_loss_t *loss,
                                    bool by_element) {
  cleave_value_t scores = loss->scores;
  cleave_value_t labels = loss->input;
  if (loss->class_axis != 1) {
    const int64_t rows[] = {-1, loss->classes};
    const int64_t all[] = {-1};
    scores = cleave_train_binary(build, "Reshape", scores, cleave_train_integers(build, rows, 2));
    labels = cleave_train_binary(build, "Reshape", labels, cleave_train_integers(build, all, 1));
  }
  const char *reduction = by_element ? "none" : cleave_value_exists(loss->share) ? "sum" : "mean";
  const cleave_attribute_t attributes[] = {cleave_train_integer("ignore_index", CLEAVE_TRAIN_IGNORED),
                                           {.name = "reduction",
                                            .kind = CLEAVE_ATTRIBUTE_STRING,
                                            .count = (uint32_t)strlen(reduction),
                                            .s = reduction}};
  const cleave_value_t inputs[] = {scores, labels};
  return cleave_train_node(build, "SoftmaxCrossEntropyLoss", inputs, 2, attributes, 2);
}

static cleave_status_t prepare_cross_entropy(const cleave_graph_t *graph, const cleave_tensor_view_t *labels,
                                             cleave_train_loss_t *loss, cleave_error_t *error) {
  const cleave_value_record_t *scores = cleave_graph_value(graph, loss->scores);
  bool is_known = scores->rank >= 2 && cleave_dtype_is_integer(labels->dtype);
  if (is_known && fits_without(scores, labels, 1)) {
    loss->class_axis = 1;
  } else if (is_known && fits_without(scores, labels, scores->rank - 1)) {
    loss->class_axis = scores->rank - 1;
  } else {
    return fail_shape(graph, loss, labels, error);
  }
  loss->classes = scores->dims[loss->class_axis];
  look_behind_softmax(graph, loss);
  return CLEAVE_OK;
}

// ---- squared differences ----

static cleave_value_t mean_square(cleave_train_build_t *build, const cleave_train_loss_t *loss,
                                  bool by_element) {
  cleave_value_t difference = cleave_train_binary(build, "Sub", loss->scores, loss->input);
  cleave_value_t square = cleave_train_binary(build, "Mul", difference, difference);
  const cleave_attribute_t attribute = cleave_train_integer("keepdims", 0);
  return by_element ? square : cleave_train_node(build, "ReduceMean", &square, 1, &attribute, 1);
}

static cleave_status_t prepare_mse(const cleave_graph_t *graph, const cleave_tensor_view_t *targets,
                                   const cleave_train_loss_t *loss, cleave_error_t *error) {
  const cleave_value_record_t *scores = cleave_graph_value(graph, loss->scores);
  bool fits = targets->rank == scores->rank;
  for (int32_t k = 0; fits && k < targets->rank; k++) {
    fits = targets->dims[k] == scores->dims[k];
  }
  return fits ? CLEAVE_OK : fail_shape(graph, loss, targets, error);
}

// ---- all ----

static cleave_status_t find_value_loss(cleave_graph_t *graph, const char *name, cleave_train_loss_t *loss,
                                       cleave_error_t *error) {
  int64_t count = 0;
  CLEAVE_TRY(cleave_gradient_find_value(graph, "loss", name, &loss->value, error));
  const cleave_value_record_t *record = cleave_graph_value(graph, loss->value);
  if (!cleave_shape_element_count(record->rank, record->dims, &count) || count != 1) {
    cleave_text_t text = {0};
    cleave_shape_print(graph->dims, record->rank, record->dims, &text);
    cleave_status_t status = cleave_error_set(
        error, CLEAVE_ERROR_INVALID_ARGUMENT,
        "loss '%.100s': expected one number, found a value of shape %s; for scores, use the loss "
        "'cross_entropy' or 'mse'",
        name, cleave_text_get(&text));
    cleave_text_deinit(&text);
    return status;
  }
  return CLEAVE_OK;
}

static cleave_status_t find_scores(const cleave_graph_t *graph, const char *name, cleave_train_loss_t *loss,
                                   cleave_error_t *error) {
  if (name != NULL) {
    return cleave_gradient_find_value(graph, "scores", name, &loss->scores, error);
  }
  loss->scores = cleave_graph_output(graph, 0);
  const cleave_value_record_t *record = cleave_graph_value(graph, loss->scores);
  if (!cleave_dtype_is_float((cleave_dtype_t)record->dtype) || record->rank < 1) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "output '%.100s' is not a tensor of floating-point numbers: name the scores that "
                            "the loss is of",
                            cleave_strings_text(&graph->strings, graph->output_names.items[0]));
  }
  return CLEAVE_OK;
}

/* The loss is multiplied by a number of the step, in float32 or float64. */
static void multiply(cleave_train_build_t *build, cleave_value_t factor, bool is_wide,
                     cleave_train_loss_t *loss) {
  if (!cleave_value_exists(factor) || build->status != CLEAVE_OK) {
    return;
  }
  cleave_dtype_t dtype = (cleave_dtype_t)cleave_graph_value(build->editor->graph, loss->value)->dtype;
  if (is_wide && dtype != CLEAVE_DTYPE_F64) {
    dtype = CLEAVE_DTYPE_F32;
  }
  cleave_value_t value = cleave_train_cast(build, loss->value, dtype);
  loss->value = cleave_train_binary(build, "Mul", value, cleave_train_cast(build, factor, dtype));
}

static cleave_status_t build_loss(cleave_graph_t *graph, bool by_element, cleave_train_loss_t *loss,
                                  cleave_error_t *error) {
  cleave_editor_t editor;
  cleave_editor_init(&editor, graph, NULL);
  editor.rule = "loss";
  cleave_train_build_t build = {.editor = &editor, .prefix = "loss", .error = error};
  if (loss->kind == CLEAVE_TRAIN_LOSS_MSE) {
    loss->value = mean_square(&build, loss, by_element);
  } else if (loss->kind == CLEAVE_TRAIN_LOSS_CROSS_ENTROPY) {
    loss->value = cross_entropy(&build, loss, by_element);
  }
  multiply(&build, loss->share, false, loss);
  multiply(&build, loss->scale, true, loss);
  cleave_editor_deinit(&editor);
  return build.status;
}

static cleave_status_t add_factors(cleave_graph_t *graph, const cleave_train_options_t *options,
                                   bool by_element, cleave_train_loss_t *loss, cleave_error_t *error) {
  if (options->communicator != NULL && !by_element) {
    CLEAVE_TRY(
        cleave_graph_add_input(graph, "training share", CLEAVE_DTYPE_F64, 0, NULL, &loss->share, error));
  }
  if (options->precision == CLEAVE_TRAIN_FLOAT16 && !by_element) {
    CLEAVE_TRY(
        cleave_graph_add_input(graph, "training loss scale", CLEAVE_DTYPE_F64, 0, NULL, &loss->scale, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_train_add_loss(cleave_graph_t *graph, const cleave_train_options_t *options,
                                      const cleave_tensor_view_t *target, bool by_element,
                                      cleave_train_loss_t *loss, cleave_error_t *error) {
  if (loss->kind == CLEAVE_TRAIN_LOSS_VALUE) {
    CLEAVE_TRY(find_value_loss(graph, options->loss, loss, error));
    CLEAVE_TRY(add_factors(graph, options, by_element, loss, error));
    return build_loss(graph, by_element, loss, error);
  }
  CLEAVE_TRY(find_scores(graph, options->scores, loss, error));
  cleave_dtype_t dtype = (cleave_dtype_t)cleave_graph_value(graph, loss->scores)->dtype;
  if (loss->kind == CLEAVE_TRAIN_LOSS_MSE) {
    CLEAVE_TRY(prepare_mse(graph, target, loss, error));
  } else {
    CLEAVE_TRY(prepare_cross_entropy(graph, target, loss, error));
    dtype = CLEAVE_DTYPE_I64;
  }
  CLEAVE_TRY(
      cleave_graph_add_input(graph, loss->array, dtype, target->rank, target->dims, &loss->input, error));
  CLEAVE_TRY(add_factors(graph, options, by_element, loss, error));
  return build_loss(graph, by_element, loss, error);
}
