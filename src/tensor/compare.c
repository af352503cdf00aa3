// SPDX-License-Identifier: Apache-2.0
/* Comparison of tensors, element by element, in double precision; integers exactly. */
#include "tensor/compare.h"

#include <math.h>
#include <string.h>

static bool same_type(const cleave_tensor_t *a, const cleave_tensor_t *b) {
  return a->dtype == b->dtype && a->rank == b->rank &&
         (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0);
}

bool cleave_tensor_is_same(const cleave_tensor_t *a, const cleave_tensor_t *b) {
  if (a == b || !same_type(a, b)) {
    return a == b;
  }
  if (a->dtype != CLEAVE_DTYPE_STRING) {
    return a->bytes == 0 || a->data == b->data || memcmp(a->data, b->data, a->bytes) == 0;
  }
  const char *const *texts = a->data;
  const char *const *others = b->data;
  int64_t k = 0;
  while (k < a->count && strcmp(texts[k], others[k]) == 0) {
    k++;
  }
  return k == a->count;
}

/* |a - b| as the comparison means it: 0 if equal, infinite if NaN or an infinity meets something else.
 */
static double distance(double a, double b) {
  if (a == b || (isnan(a) && isnan(b))) {
    return 0.0;
  }
  double difference = fabs(a - b);
  return isnan(difference) ? INFINITY : difference;
}

static void note(cleave_difference_t *out, int64_t index, double actual, double expected, double difference,
                 bool outside) {
  out->max_absolute = difference > out->max_absolute ? difference : out->max_absolute;
  if (isfinite(expected) && fabs(expected) > out->max_expected) {
    out->max_expected = fabs(expected);
  }
  if (!outside) {
    return;
  }
  if (out->mismatches++ == 0) {
    out->first = index;
    out->first_actual = actual;
    out->first_expected = expected;
  }
}

void cleave_tensor_compare_by(const cleave_tensor_t *actual, const cleave_tensor_t *expected,
                              cleave_tolerance_of_t tolerance_of, const void *context,
                              cleave_difference_t *out_difference) {
  *out_difference = (cleave_difference_t){.first = -1, .same_type = same_type(actual, expected)};
  if (!out_difference->same_type) {
    return;
  }
  bool is_text = actual->dtype == CLEAVE_DTYPE_STRING;
  bool is_wide = actual->dtype == CLEAVE_DTYPE_I64 || actual->dtype == CLEAVE_DTYPE_U64;
  for (int64_t k = 0; k < actual->count; k++) {
    if (is_text) {
      bool equal = strcmp(((const char **)actual->data)[k], ((const char **)expected->data)[k]) == 0;
      note(out_difference, k, NAN, NAN, equal ? 0.0 : INFINITY, !equal);
      continue;
    }
    double a = cleave_tensor_get_float(actual, k);
    double b = cleave_tensor_get_float(expected, k);
    double difference = distance(a, b);
    bool exactly_equal =
        !is_wide || memcmp((const char *)actual->data + 8 * k, (const char *)expected->data + 8 * k, 8) == 0;
    bool outside =
        isinf(difference) || difference > tolerance_of(context, b) || (difference == 0.0 && !exactly_equal);
    note(out_difference, k, a, b, difference, outside);
  }
}

typedef struct relative {
  double rtol;
  double atol;
} relative_t;

static double relative_of(const void *context, double expected) {
  const relative_t *relative = context;
  return relative->atol + relative->rtol * fabs(expected);
}

void cleave_tensor_compare(const cleave_tensor_t *actual, const cleave_tensor_t *expected, double rtol,
                           double atol, cleave_difference_t *out_difference) {
  relative_t relative = {rtol, atol};
  cleave_tensor_compare_by(actual, expected, relative_of, &relative, out_difference);
}
