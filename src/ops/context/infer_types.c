// SPDX-License-Identifier: Apache-2.0
// Types of all ports in one text, which states what an operator's definition says in its own notation.
#include <string.h>

#include "ops/context/infer_context.h"

/* The first place where a letter stands. */
typedef struct place {
  cleave_fact_t *fact; /* NULL: nowhere yet */
  int32_t axis;
} place_t;

typedef struct letters {
  place_t dtypes[26];
  place_t shapes[26];
  place_t sizes[26];
} letters_t;

/* True if the letter was seen before; otherwise this is its place. */
static bool is_known(place_t *place, cleave_fact_t *fact, int32_t axis) {
  if (place->fact != NULL) {
    return true;
  }
  *place = (place_t){fact, axis};
  return false;
}

static cleave_status_t state_dtype(cleave_infer_t *infer, cleave_fact_t *fact, char letter,
                                   letters_t *letters, cleave_error_t *error) {
  switch (letter) {
    case '-': return CLEAVE_OK;
    case 'B': return cleave_infer_set_dtype(infer, fact, CLEAVE_DTYPE_BOOL, error);
    case 'F': return cleave_infer_set_dtype(infer, fact, CLEAVE_DTYPE_F32, error);
    case 'I': return cleave_infer_set_dtype(infer, fact, CLEAVE_DTYPE_I32, error);
    case 'L': return cleave_infer_set_dtype(infer, fact, CLEAVE_DTYPE_I64, error);
    case 'U': return cleave_infer_set_dtype(infer, fact, CLEAVE_DTYPE_U8, error);
    default: break;
  }
  place_t *place = &letters->dtypes[letter - 'a'];
  return is_known(place, fact, 0) ? cleave_infer_same_dtype(infer, place->fact, fact, error) : CLEAVE_OK;
}

/* The sizes up to ']'. */
static cleave_status_t state_sizes(cleave_infer_t *infer, cleave_fact_t *fact, const char *sizes,
                                   letters_t *letters, cleave_error_t *error) {
  int32_t rank = (int32_t)strcspn(sizes, "*]");
  if (sizes[rank] == ']') {
    CLEAVE_TRY(cleave_infer_set_rank(infer, fact, rank, error));
  }
  for (int32_t axis = 0; axis < rank; axis++) {
    char size = sizes[axis];
    if (size >= '0' && size <= '9') {
      CLEAVE_TRY(cleave_infer_set_dim(infer, fact, axis, size - '0', error));
    } else if (size != '?') {
      place_t *place = &letters->sizes[size - 'a'];
      if (is_known(place, fact, axis)) {
        CLEAVE_TRY(cleave_infer_same_dim(infer, place->fact, place->axis, fact, axis, error));
      }
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_types(cleave_infer_t *infer, const char *types, cleave_error_t *error) {
  letters_t letters = {0};
  bool is_output = false;
  uint32_t port = 0;
  for (const char *at = types; *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
    if (*at == '>') {
      is_output = true;
      port = 0;
      continue;
    }
    cleave_fact_t *fact = is_output ? cleave_infer_output(infer, port) : cleave_infer_input(infer, port);
    port++;
    if (fact == NULL) {
      continue;
    }
    CLEAVE_TRY(state_dtype(infer, fact, at[0], &letters, error));
    if (at[1] == ':') {
      place_t *place = &letters.shapes[at[2] - 'a'];
      if (is_known(place, fact, 0)) {
        CLEAVE_TRY(cleave_infer_same_shape(infer, place->fact, fact, error));
      }
    }
    const char *sizes = at + (at[1] == ':' ? 3 : 1);
    if (*sizes == '[') {
      CLEAVE_TRY(state_sizes(infer, fact, sizes + 1, &letters, error));
    }
  }
  return CLEAVE_OK;
}
