// SPDX-License-Identifier: Apache-2.0
// Writing the outputs of a run.
#include "cli/report/run_outputs.h"

#include <string.h>

#include "cli/common/load.h"
#include "runtime/model/model.h"
#include "system/file.h"
#include "tools/verify/check.h"

static cleave_status_t fail_unknown(const cleave_model_t *model, const char *text, cleave_error_t *error) {
  const char *equals = strchr(text, '=');
  if (equals == NULL || equals == text) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "--output: expected NAME=FILE, found '%s'",
                            text);
  }
  cleave_text_t names = {0};
  for (uint32_t k = 0; k < cleave_model_output_count(model); k++) {
    cleave_port_t port;
    if (cleave_model_output(model, k, &port, error) == CLEAVE_OK) {
      cleave_text_show(&names, "%s%s", k == 0 ? "" : ", ", port.name);
    }
  }
  cleave_status_t status = cleave_error_set(
      error, CLEAVE_ERROR_INVALID_ARGUMENT, "--output: the model has no output '%.*s'; its outputs are: %s",
      (int)(equals - text < 200 ? equals - text : 200), text, cleave_text_get(&names));
  cleave_text_deinit(&names);
  return status;
}

/* Splits NAME=FILE at the first '=' whose left side is an output. */
static cleave_status_t find_output(const cleave_model_t *model, const char *text, uint32_t *out_index,
                                   const char **out_path, cleave_error_t *error) {
  for (const char *equals = strchr(text, '='); equals != NULL; equals = strchr(equals + 1, '=')) {
    char *name = cleave_copy_text(text, (size_t)(equals - text));
    if (name == NULL) {
      return cleave_error_out_of_memory(error);
    }
    *out_index = cleave_model_find_output(model, name);
    *out_path = equals + 1;
    cleave_free(name);
    if (*out_index != CLEAVE_INDEX_NONE) {
      return CLEAVE_OK;
    }
  }
  return fail_unknown(model, text, error);
}

cleave_status_t cleave_run_outputs_check(const cleave_run_outputs_t *outputs, const cleave_model_t *model,
                                         cleave_error_t *error) {
  for (size_t k = 0; k < outputs->files.count; k++) {
    uint32_t index = 0;
    const char *path = NULL;
    CLEAVE_TRY(find_output(model, outputs->files.items[k], &index, &path, error));
    CLEAVE_TRY(cleave_tensor_path_check(path, error));
  }
  return outputs->folder != NULL ? cleave_folder_make(outputs->folder, error) : CLEAVE_OK;
}

static cleave_status_t copy_output(const cleave_job_t *job, uint32_t index, cleave_tensor_t **out_tensor,
                                   cleave_error_t *error) {
  cleave_tensor_view_t view;
  *out_tensor = NULL;
  CLEAVE_TRY(cleave_session_output(job->session, index, &view, error));
  return cleave_check_copy(&view, out_tensor, error);
}

static cleave_status_t write_file(const cleave_job_t *job, const char *text, cleave_error_t *error) {
  uint32_t index = 0;
  const char *path = NULL;
  cleave_port_t port;
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(find_output(job->model, text, &index, &path, error));
  CLEAVE_TRY(cleave_model_output(job->model, index, &port, error));
  CLEAVE_TRY(copy_output(job, index, &tensor, error));
  cleave_status_t status = cleave_tensor_save(path, tensor, port.name, error);
  cleave_tensor_release(tensor);
  return status;
}

static cleave_status_t write_folder(const cleave_job_t *job, const char *folder, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  uint32_t count = cleave_model_output_count(job->model);
  cleave_tensor_t **tensors = cleave_allocate_zeroed(count, sizeof *tensors);
  if (tensors == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t k = 0; k < count; k++) {
    CLEAVE_TRY_CLEANUP(copy_output(job, k, &tensors[k], error));
  }
  CLEAVE_TRY_CLEANUP(cleave_tensors_save(folder, "input", job->inputs.tensors, job->inputs.count, error));
  CLEAVE_TRY_CLEANUP(cleave_tensors_save(folder, "output", tensors, count, error));
cleanup:
  for (uint32_t k = 0; k < count; k++) {
    cleave_tensor_release(tensors[k]);
  }
  cleave_free(tensors);
  return status;
}

cleave_status_t cleave_run_outputs_write(const cleave_run_outputs_t *outputs, const cleave_job_t *job,
                                         cleave_error_t *error) {
  for (size_t k = 0; k < outputs->files.count; k++) {
    CLEAVE_TRY(write_file(job, outputs->files.items[k], error));
  }
  return outputs->folder != NULL ? write_folder(job, outputs->folder, error) : CLEAVE_OK;
}
