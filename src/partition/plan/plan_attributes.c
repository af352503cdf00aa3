// SPDX-License-Identifier: Apache-2.0
// Attributes of regions and fusions: deep copies in order of their names, so that plans and hashes do not
// depend on the order in which a rule named them.

#include <stdlib.h>
#include <string.h>

#include "partition/plan/plan.h"

static int compare_names(const void *a, const void *b) {
  const cleave_attribute_t *x = a;
  const cleave_attribute_t *y = b;
  return strcmp(x->name, y->name);
}

cleave_status_t cleave_plan_copy_attributes(cleave_arena_t *arena, const cleave_attribute_t *attributes,
                                            uint32_t count, const cleave_attribute_t **out_attributes,
                                            cleave_error_t *error) {
  *out_attributes = NULL;
  if (count == 0) {
    return CLEAVE_OK;
  }
  cleave_attribute_t *copies = cleave_arena_copy(arena, attributes, count * sizeof *copies);
  CLEAVE_TRY_MEMORY(copies, error);
  for (uint32_t k = 0; k < count; k++) {
    if (attributes[k].kind == CLEAVE_ATTRIBUTE_TENSOR) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "attribute '%s': a region carries no tensors", attributes[k].name);
    }
    copies[k].name = cleave_arena_copy_text(arena, attributes[k].name, strlen(attributes[k].name));
    if (copies[k].name == NULL || !cleave_attribute_copy_content(&copies[k], arena)) {
      return cleave_error_out_of_memory(error);
    }
  }
  qsort(copies, count, sizeof *copies, compare_names);
  for (uint32_t k = 1; k < count; k++) {
    if (strcmp(copies[k - 1].name, copies[k].name) == 0) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "attribute '%s' is given twice",
                              copies[k].name);
    }
  }
  *out_attributes = copies;
  return CLEAVE_OK;
}
