// SPDX-License-Identifier: Apache-2.0
// All constants of a command line are set at once: the structure is judged with all of them in place.
#include "cli/common/constants.h"

#include <string.h>

#include "backend/region/view.h"
#include "base/memory.h"
#include "cli/common/load.h"

typedef struct constants {
  size_t count;
  char **names;
  cleave_tensor_t **tensors;
  cleave_tensor_view_t *views;
  const cleave_tensor_view_t **pointers;
} constants_t;

static cleave_status_t load_one(const char *text, char **out_name, cleave_tensor_t **out_tensor,
                                cleave_error_t *error) {
  const char *equals = strchr(text, '=');
  if (equals == NULL || equals == text) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "--set-constant: expected NAME=FILE, found '%s'", text);
  }
  *out_name = cleave_copy_text(text, (size_t)(equals - text));
  return *out_name == NULL ? cleave_error_out_of_memory(error)
                           : cleave_tensor_load(equals + 1, out_tensor, error);
}

static cleave_status_t load_all(const cleave_text_list_t *list, constants_t *constants,
                                cleave_error_t *error) {
  constants->count = list->count;
  constants->names = cleave_allocate_zeroed(list->count, sizeof *constants->names);
  constants->tensors = cleave_allocate_zeroed(list->count, sizeof *constants->tensors);
  constants->views = cleave_allocate_zeroed(list->count, sizeof *constants->views);
  constants->pointers = cleave_allocate_zeroed(list->count, sizeof *constants->pointers);
  CLEAVE_TRY_MEMORY(constants->names != NULL && constants->tensors != NULL && constants->views != NULL &&
                        constants->pointers != NULL,
                    error);
  for (size_t k = 0; k < list->count; k++) {
    CLEAVE_TRY(load_one(list->items[k], &constants->names[k], &constants->tensors[k], error));
    constants->views[k] = cleave_tensor_view(constants->tensors[k]);
    constants->pointers[k] = &constants->views[k];
  }
  return CLEAVE_OK;
}

static void deinit(constants_t *constants) {
  for (size_t k = 0; k < constants->count; k++) {
    if (constants->names != NULL) {
      cleave_free(constants->names[k]);
    }
    if (constants->tensors != NULL) {
      cleave_tensor_release(constants->tensors[k]);
    }
  }
  cleave_free((void *)constants->names);
  cleave_free((void *)constants->tensors);
  cleave_free(constants->views);
  cleave_free((void *)constants->pointers);
}

cleave_status_t cleave_constants_set(const cleave_text_list_t *list, cleave_model_t **model,
                                     cleave_error_t *error) {
  constants_t constants = {0};
  cleave_model_t *changed = NULL;
  if (list->count == 0) {
    return CLEAVE_OK;
  }
  cleave_status_t status = load_all(list, &constants, error);
  if (status == CLEAVE_OK) {
    status = cleave_model_set_constants(*model, (const char *const *)constants.names, constants.pointers,
                                        constants.count, &changed, error);
  }
  deinit(&constants);
  CLEAVE_TRY(status);
  cleave_model_release(*model);
  *model = changed;
  return CLEAVE_OK;
}
