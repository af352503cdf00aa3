// SPDX-License-Identifier: Apache-2.0
// Updates are pointwise operators of the weight's dtype. What is the same for all weights of a dtype (rates,
// the factor that cuts gradients) is a scalar that is computed once.
#include "train/nodes/update.h"

#include <math.h>

#include "train/nodes/build.h"

enum { DTYPES = 2 }; /* float32, float64 */

/* Scalars in the dtype of the weights that are updated. */
typedef struct scalars {
  cleave_value_t value[CLEAVE_TRAIN_SCALARS];
  cleave_value_t cut; /* what gradients are multiplied by; NONE: they are not cut */
  cleave_dtype_t dtype;
} scalars_t;

uint32_t cleave_train_state_count(cleave_optimizer_t optimizer) {
  return optimizer == CLEAVE_OPTIMIZER_SGD ? 0 : optimizer == CLEAVE_OPTIMIZER_MOMENTUM ? 1 : 2;
}

static bool is_adam(const cleave_train_options_t *options) {
  return options->optimizer == CLEAVE_OPTIMIZER_ADAM || options->optimizer == CLEAVE_OPTIMIZER_ADAMW;
}

void cleave_train_scalars(const cleave_train_options_t *options, int64_t updates, double rate, double scale,
                          double out_scalars[CLEAVE_TRAIN_SCALARS]) {
  double t = (double)updates + 1.0;
  out_scalars[CLEAVE_TRAIN_RATE] = is_adam(options) ? rate / (1.0 - pow(options->beta1, t)) : rate;
  out_scalars[CLEAVE_TRAIN_ROOT] = 1.0 / sqrt(1.0 - pow(options->beta2, t));
  out_scalars[CLEAVE_TRAIN_KEEP] = 1.0 - rate * options->weight_decay;
  out_scalars[CLEAVE_TRAIN_UNSCALE] = 1.0 / scale;
}

// ---- one weight ----

/* a x + y, with a a number. */
static cleave_value_t scaled_sum(cleave_train_build_t *build, double a, cleave_value_t x, cleave_value_t y,
                                 cleave_dtype_t dtype) {
  cleave_value_t number = cleave_train_number(build, dtype, a);
  return cleave_train_binary(build, "Add", cleave_train_binary(build, "Mul", number, x), y);
}

static void update_momentum(cleave_train_build_t *build, const cleave_train_options_t *options,
                            const scalars_t *scalars, cleave_value_t d, cleave_train_weight_t *weight) {
  cleave_value_t velocity = scaled_sum(build, options->momentum, weight->state[0], d, scalars->dtype);
  cleave_value_t change =
      options->nesterov ? scaled_sum(build, options->momentum, velocity, d, scalars->dtype) : velocity;
  weight->next_state[0] = velocity;
  change = cleave_train_binary(build, "Mul", change, scalars->value[CLEAVE_TRAIN_RATE]);
  weight->next = cleave_train_binary(build, "Sub", weight->value, change);
}

static void update_adam(cleave_train_build_t *build, const cleave_train_options_t *options,
                        const scalars_t *scalars, cleave_value_t d, cleave_train_weight_t *weight) {
  cleave_dtype_t dtype = scalars->dtype;
  cleave_value_t part =
      cleave_train_binary(build, "Mul", d, cleave_train_number(build, dtype, 1.0 - options->beta1));
  cleave_value_t mean = scaled_sum(build, options->beta1, weight->state[0], part, dtype);
  cleave_value_t square = cleave_train_binary(build, "Mul", d, d);
  square = cleave_train_binary(build, "Mul", square, cleave_train_number(build, dtype, 1.0 - options->beta2));
  cleave_value_t variance = scaled_sum(build, options->beta2, weight->state[1], square, dtype);
  cleave_value_t root = cleave_train_unary(build, "Sqrt", variance);
  root = cleave_train_binary(build, "Mul", root, scalars->value[CLEAVE_TRAIN_ROOT]);
  root = cleave_train_binary(build, "Add", root, cleave_train_number(build, dtype, options->epsilon));
  cleave_value_t change = cleave_train_binary(build, "Div", mean, root);
  change = cleave_train_binary(build, "Mul", change, scalars->value[CLEAVE_TRAIN_RATE]);
  cleave_value_t from = weight->value;
  if (options->optimizer == CLEAVE_OPTIMIZER_ADAMW && options->weight_decay != 0.0) {
    from = cleave_train_binary(build, "Mul", from, scalars->value[CLEAVE_TRAIN_KEEP]);
  }
  weight->next = cleave_train_binary(build, "Sub", from, change);
  weight->next_state[0] = mean;
  weight->next_state[1] = variance;
}

static void update(cleave_train_build_t *build, const cleave_train_options_t *options,
                   const scalars_t *scalars, cleave_train_weight_t *weight) {
  cleave_value_t d = weight->gradient;
  if (cleave_value_exists(scalars->cut)) {
    d = cleave_train_binary(build, "Mul", d, scalars->cut);
  }
  if (options->weight_decay != 0.0 && options->optimizer != CLEAVE_OPTIMIZER_ADAMW) {
    d = scaled_sum(build, options->weight_decay, weight->value, d, scalars->dtype);
  }
  if (is_adam(options)) {
    update_adam(build, options, scalars, d, weight);
  } else if (options->optimizer == CLEAVE_OPTIMIZER_MOMENTUM) {
    update_momentum(build, options, scalars, d, weight);
  } else {
    cleave_value_t change = cleave_train_binary(build, "Mul", d, scalars->value[CLEAVE_TRAIN_RATE]);
    weight->next = cleave_train_binary(build, "Sub", weight->value, change);
  }
}

// ---- all weights ----

static cleave_dtype_t dtype_of(const cleave_train_build_t *build, cleave_value_t value) {
  return (cleave_dtype_t)cleave_graph_value(build->editor->graph, value)->dtype;
}

/* Gradients of the loss in the place of those of the scaled one. */
static void unscale(cleave_train_build_t *build, cleave_value_t factor, cleave_train_weight_t *weights,
                    size_t count) {
  cleave_value_t factors[DTYPES] = {CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE};
  for (size_t k = 0; k < count && build->status == CLEAVE_OK; k++) {
    cleave_dtype_t dtype = dtype_of(build, weights[k].value);
    cleave_value_t *own = &factors[dtype == CLEAVE_DTYPE_F64 ? 1 : 0];
    if (!cleave_value_exists(*own)) {
      *own = cleave_train_cast(build, factor, dtype);
    }
    weights[k].gradient = cleave_train_binary(build, "Mul", weights[k].gradient, *own);
  }
}

/* The root of the sum of all squares. */
static cleave_value_t add_norm(cleave_train_build_t *build, const cleave_train_weight_t *weights,
                               size_t count, cleave_error_t *error) {
  const cleave_attribute_t attribute = cleave_train_integer("keepdims", 0);
  cleave_value_t *squares = cleave_allocate(count + 1, sizeof *squares);
  if (squares == NULL) {
    build->status = cleave_error_out_of_memory(error);
    return CLEAVE_VALUE_NONE;
  }
  cleave_dtype_t dtype = dtype_of(build, weights[0].value);
  for (size_t k = 0; k < count; k++) {
    squares[k] = cleave_train_node(build, "ReduceSumSquare", &weights[k].gradient, 1, &attribute, 1);
    squares[k] = cleave_train_cast(build, squares[k], dtype);
  }
  cleave_value_t sum = count == 1 ? squares[0] : cleave_train_node(build, "Sum", squares, count, NULL, 0);
  cleave_free(squares);
  return cleave_train_unary(build, "Sqrt", sum);
}

/* min(1, clip / (norm + 1e-6)), as PyTorch cuts gradients. */
static cleave_value_t add_cut(cleave_train_build_t *build, double clip, cleave_value_t norm,
                              cleave_dtype_t dtype) {
  norm = cleave_train_cast(build, norm, dtype);
  cleave_value_t shifted = cleave_train_binary(build, "Add", norm, cleave_train_number(build, dtype, 1e-6));
  cleave_value_t share = cleave_train_binary(build, "Div", cleave_train_number(build, dtype, clip), shifted);
  return cleave_train_binary(build, "Min", share, cleave_train_number(build, dtype, 1.0));
}

cleave_status_t cleave_train_add_updates(cleave_editor_t *editor, const cleave_train_options_t *options,
                                         const cleave_value_t *scalars, cleave_train_weight_t *weights,
                                         size_t count, cleave_value_t *out_norm, cleave_error_t *error) {
  static const cleave_dtype_t dtypes[DTYPES] = {CLEAVE_DTYPE_F32, CLEAVE_DTYPE_F64};
  cleave_train_build_t build = {.editor = editor, .prefix = "update", .error = error};
  editor->rule = build.prefix;
  if (options->precision == CLEAVE_TRAIN_FLOAT16) {
    unscale(&build, scalars[CLEAVE_TRAIN_UNSCALE], weights, count);
  }
  *out_norm = build.status == CLEAVE_OK ? add_norm(&build, weights, count, error) : CLEAVE_VALUE_NONE;
  for (size_t t = 0; t < DTYPES && build.status == CLEAVE_OK; t++) {
    scalars_t cast = {.cut = CLEAVE_VALUE_NONE, .dtype = CLEAVE_DTYPE_UNKNOWN};
    for (size_t k = 0; k < count && build.status == CLEAVE_OK; k++) {
      if (dtype_of(&build, weights[k].value) != dtypes[t]) {
        continue;
      }
      if (cast.dtype == CLEAVE_DTYPE_UNKNOWN) {
        cast.dtype = dtypes[t];
        for (int s = 0; s < CLEAVE_TRAIN_SCALARS; s++) {
          cast.value[s] = cleave_train_cast(&build, scalars[s], cast.dtype);
        }
        cast.cut =
            options->clip > 0.0 ? add_cut(&build, options->clip, *out_norm, cast.dtype) : CLEAVE_VALUE_NONE;
      }
      update(&build, options, &cast, &weights[k]);
    }
  }
  return build.status;
}
