// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/draw.h"

#include <math.h>

#include "base/hash.h"

enum { FEW_INTEGERS = 8, LARGEST_INTEGER = 9 };

/* Statistics of the finite elements of a tensor. */
typedef struct likeness {
  double mean;
  double deviation; /* 1 if all are the same */
  double least;
  double most;
  bool is_of_two; /* none lies between `least` and `most`, which differ */
} likeness_t;

static likeness_t likeness_of(const cleave_tensor_t *own) {
  double sum = 0.0;
  double squares = 0.0;
  double least = INFINITY;
  double most = -INFINITY;
  int64_t finite = 0;
  for (int64_t k = 0; k < own->count; k++) {
    double value = cleave_tensor_get_float(own, k);
    if (isfinite(value)) {
      sum += value;
      squares += value * value;
      least = value < least ? value : least;
      most = value > most ? value : most;
      finite++;
    }
  }
  double mean = finite > 0 ? sum / (double)finite : 0.0;
  double variance = finite > 0 ? squares / (double)finite - mean * mean : 1.0;
  likeness_t like = {.mean = mean,
                     .deviation = variance > 1e-12 ? sqrt(variance) : 1.0,
                     .least = least,
                     .most = most,
                     .is_of_two = least < most && finite > 2};
  for (int64_t k = 0; k < own->count && like.is_of_two; k++) {
    double value = cleave_tensor_get_float(own, k);
    like.is_of_two = value == least || value == most;
  }
  return like;
}

static void fill_floats(const cleave_tensor_t *own, uint64_t seed, double spread, cleave_tensor_t *tensor) {
  likeness_t like = likeness_of(own);
  if (like.is_of_two) {
    for (int64_t k = 0; k < tensor->count; k++) {
      bool is_most = (cleave_hash_combine(seed, (uint64_t)k) >> 17 & 1U) != 0;
      cleave_tensor_set_float(tensor, k, is_most ? like.most : like.least);
    }
    return;
  }
  cleave_tensor_fill_normal(tensor, seed, like.mean, spread * like.deviation);
  for (int64_t k = 0; like.least >= 0.0 && k < tensor->count; k++) {
    cleave_tensor_set_float(tensor, k, fabs(cleave_tensor_get_float(tensor, k)));
  }
}

static bool has_sign(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_I8 || dtype == CLEAVE_DTYPE_I16 || dtype == CLEAVE_DTYPE_I32 ||
         dtype == CLEAVE_DTYPE_I64;
}

double cleave_draw_spread(uint32_t round) {
  return round % 2 == 1 ? 1.0 : round % 4 == 2 ? 10.0 : 100.0;
}

cleave_status_t cleave_draw_like(cleave_tensor_t *own, uint64_t seed, double spread, bool any_integers,
                                 cleave_tensor_t **out_tensor, cleave_error_t *error) {
  bool is_float = cleave_dtype_is_float(own->dtype);
  bool is_any = any_integers && cleave_dtype_is_integer(own->dtype) && own->count > FEW_INTEGERS;
  if (!is_float && !is_any) {
    *out_tensor = cleave_tensor_retain(own);
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_tensor_create(own->dtype, own->rank, own->dims, out_tensor, error));
  if (is_float) {
    fill_floats(own, seed, spread, *out_tensor);
  } else {
    double low = has_sign(own->dtype) ? -LARGEST_INTEGER : 0.0;
    cleave_tensor_fill_uniform(*out_tensor, seed, low, LARGEST_INTEGER + 1.0);
  }
  return CLEAVE_OK;
}

bool cleave_draw_is_finite(const cleave_tensor_t *tensor) {
  for (int64_t k = 0; cleave_dtype_is_float(tensor->dtype) && k < tensor->count; k++) {
    if (!isfinite(cleave_tensor_get_float(tensor, k))) {
      return false;
    }
  }
  return true;
}

/* ---- types ---- */

/* A bit per type of fewer bits than float32. */
static uint64_t narrow_types(const cleave_graph_t *graph) {
  uint64_t types = 0;
  for (size_t k = 0; k < graph->values.count; k++) {
    cleave_dtype_t dtype = (cleave_dtype_t)graph->values.items[k].dtype;
    size_t size = cleave_dtype_size(dtype);
    if (!graph->values.items[k].is_removed && dtype != CLEAVE_DTYPE_BOOL && size > 0 &&
        size < sizeof(float)) {
      types |= UINT64_C(1) << dtype;
    }
  }
  return types;
}

bool cleave_draw_narrows(const cleave_graph_t *before, const cleave_graph_t *after) {
  return (narrow_types(after) & ~narrow_types(before)) != 0;
}
