// SPDX-License-Identifier: Apache-2.0
// Writing the outputs of a run.
#include "cli/run/report.h"

#include "cli/common/load.h"
#include "runtime/model/model.h"
#include "system/file.h"
#include "tools/verify/check.h"

static const char *output_name(const void *owner, uint32_t index) {
  cleave_port_t port = {.size = sizeof port};
  return cleave_model_output(owner, index, &port, NULL) == CLEAVE_OK ? port.name : "";
}

static cleave_status_t find_output(const cleave_model_t *model, const char *text, uint32_t *out_index,
                                   const char **out_path, cleave_error_t *error) {
  const cleave_port_option_t ports = {.option = "--output",
                                      .kind = "output",
                                      .owner = model,
                                      .name = output_name,
                                      .count = cleave_model_output_count(model)};
  return cleave_port_option_find(&ports, text, out_index, out_path, error);
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
  CLEAVE_TRY(cleave_job_output(job, index, &view, error));
  return cleave_check_copy(&view, out_tensor, error);
}

static cleave_status_t write_file(const cleave_job_t *job, const char *text, cleave_error_t *error) {
  uint32_t index = 0;
  const char *path = NULL;
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(find_output(job->model, text, &index, &path, error));
  CLEAVE_TRY(copy_output(job, index, &tensor, error));
  cleave_status_t status = cleave_tensor_save(path, tensor, output_name(job->model, index), error);
  cleave_tensor_release(tensor);
  return status;
}

static cleave_status_t write_folder(const cleave_job_t *job, const char *folder, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  uint32_t count = cleave_model_output_count(job->model);
  cleave_tensor_t **tensors = cleave_allocate_zeroed(count, sizeof *tensors);
  CLEAVE_TRY_MEMORY(tensors, error);
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
