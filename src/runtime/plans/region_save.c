// SPDX-License-Identifier: Apache-2.0
// Regions of a plan as text and files, and models that were regions: this part of the embedding API.
#include <string.h>

#include "backend/region/region_json.h"
#include "backend/region/view.h"
#include "base/sized.h"
#include "runtime/model/model_internal.h"
#include "runtime/model/region_graph.h"

enum { MAX_FILE_NAME = 160 };

uint32_t cleave_plan_region_count(const cleave_plan_t *plan) {
  return plan->region_count;
}

const char *cleave_plan_region_name(const cleave_plan_t *plan, uint32_t index) {
  return index < plan->region_count ? plan->regions[index].name : "";
}

const char *cleave_plan_region_backend(const cleave_plan_t *plan, uint32_t index) {
  return index < plan->region_count ? plan->regions[index].backend : "";
}

cleave_status_t cleave_plan_print_region(const cleave_plan_t *plan, uint32_t index,
                                         const cleave_region_json_options_t *options, cleave_text_t *text,
                                         cleave_error_t *error) {
  cleave_region_json_options_t own = *options;
  cleave_view_builder_t builder;
  cleave_arena_t arena = {0};
  cleave_view_t view;
  own.backend = plan->regions[index].backend;
  own.dims = plan->graph->dims;
  cleave_view_builder_init(&builder, plan->graph);
  cleave_status_t status =
      cleave_view_build_part(&builder, plan, index, CLEAVE_INDEX_NONE, false, &arena, &view, error);
  CLEAVE_THEN(status, cleave_region_json_print(&view.region, &own, text, error));
  cleave_view_builder_deinit(&builder);
  cleave_arena_deinit(&arena);
  return status;
}

cleave_status_t cleave_plan_region_json(const cleave_plan_t *plan, uint32_t index,
                                        cleave_region_constants_t constants, char **out_text,
                                        cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_region_json_options_t options = {.constants = constants};
  *out_text = NULL;
  if (index >= plan->region_count) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "region %u: the plan has %u",
                            (unsigned)index, (unsigned)plan->region_count);
  }
  if (constants == CLEAVE_REGION_CONSTANTS_FILES) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "a region that is given as text cannot keep constants in files");
  }
  CLEAVE_TRY_OR(cleave_plan_print_region(plan, index, &options, &text, error), cleave_text_deinit(&text));
  *out_text = text.data;
  return CLEAVE_OK;
}

/* ---- files ---- */

/* "<folder>/<name>.json"; a name that had to be changed gets the number of the region, so that it is the only
 * one. */
static void add_path(const char *folder, const char *name, uint32_t index, cleave_text_t *path) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  size_t length = strlen(name);
  bool is_plain = strspn(name, plain) == length && length <= MAX_FILE_NAME && length > 0 && name[0] != '.';
  cleave_text_format(path, "%s/", folder);
  for (size_t k = 0; k < length && k < MAX_FILE_NAME; k++) {
    bool keeps = strchr(plain, name[k]) != NULL && (k > 0 || name[k] != '.');
    cleave_text_append(path, keeps ? &name[k] : "_", 1);
  }
  if (!is_plain) {
    cleave_text_format(path, ".%u", (unsigned)index);
  }
  cleave_text_add(path, ".json");
}

static cleave_status_t save(const cleave_plan_t *plan, uint32_t index, const char *folder,
                            cleave_region_constants_t constants, cleave_error_t *error) {
  cleave_text_t path = {0};
  cleave_text_t text = {0};
  add_path(folder, plan->regions[index].name, index, &path);
  cleave_status_t status = cleave_text_check(&path, error);
  if (status == CLEAVE_OK) {
    cleave_region_json_options_t options = {.constants = constants, .path = path.data};
    status = cleave_plan_print_region(plan, index, &options, &text, error);
  }
  CLEAVE_THEN(status, cleave_file_write(path.data, text.data, text.length, error));
  cleave_text_deinit(&text);
  cleave_text_deinit(&path);
  return status;
}

cleave_status_t cleave_plan_save_regions(const cleave_plan_t *plan, const char *folder,
                                         cleave_region_constants_t constants, cleave_error_t *error) {
  CLEAVE_TRY(cleave_folder_make(folder, error));
  for (uint32_t k = 0; k < plan->region_count; k++) {
    CLEAVE_TRY(save(plan, k, folder, constants, error));
  }
  return CLEAVE_OK;
}

/* ---- models ---- */

/* The one that the model, or the one it was bound from, was made of; NULL: none. */
static const cleave_region_file_t *region_of(const cleave_model_t *model) {
  while (model != NULL && model->region == NULL) {
    model = model->origin;
  }
  return model == NULL ? NULL : model->region;
}

bool cleave_model_is_region(const cleave_model_t *model) {
  return region_of(model) != NULL;
}

cleave_status_t cleave_model_plan_region(cleave_model_t *model, const char *backend,
                                         const cleave_plan_load_options_t *options, cleave_plan_t **out_plan,
                                         cleave_error_t *error) {
  const cleave_region_file_t *region = region_of(model);
  cleave_plan_load_options_t own = {.size = sizeof own};
  *out_plan = NULL;
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_plan_load_options_t, options, &own, error));
  if (region == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "the model was not loaded from a region: it has no plan of its own");
  }
  return cleave_region_file_plan(region, cleave_model_graph(model), backend, own.fallback, out_plan, error);
}
