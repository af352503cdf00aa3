// SPDX-License-Identifier: Apache-2.0
#include "cli/run/report.h"

#include "cli/common/common.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "cli/run/processes.h"
#include "system/clock.h"
#include "system/resident.h"

bool cleave_run_stages_exist(const cleave_run_stages_t *stages) {
  return stages->communicator != NULL && stages->communicator->count > 1;
}

cleave_status_t cleave_run_stages_agree(const cleave_run_stages_t *stages, cleave_status_t status,
                                        cleave_error_t *error) {
  return cleave_communicator_agree(stages->communicator, status, error);
}

/* Inputs of the whole model are set; the others come with each request. */
static cleave_status_t make_session(const cleave_stage_t *stage, cleave_job_t *job, cleave_error_t *error) {
  cleave_session_options_t options = cleave_job_session_options(job);
  const cleave_tensor_view_t **inputs = cleave_allocate((size_t)stage->input_count + 1, sizeof *inputs);
  if (inputs == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t k = 0; k < stage->input_count; k++) {
    inputs[k] = &stage->inputs[k];
  }
  cleave_status_t status = cleave_session_create(stage->model, stage->plan, inputs, stage->input_count,
                                                 &options, &job->session, error);
  cleave_free((void *)inputs);
  for (uint32_t k = 0; k < stage->input_count && status == CLEAVE_OK; k++) {
    if (stage->model_inputs[k] != CLEAVE_INDEX_NONE) {
      status =
          cleave_session_set_input(job->session, k, &job->plan_inputs.views[stage->model_inputs[k]], error);
    }
  }
  return status;
}

cleave_status_t cleave_run_stages_make(cleave_run_stages_t *stages, cleave_job_t *job, int64_t concurrency,
                                       cleave_status_t status, cleave_error_t *error) {
  CLEAVE_THEN(status, cleave_job_load_inputs(job, error));
  const cleave_stage_source_t source = {.model = job->model,
                                        .plan = job->plan,
                                        .inputs = job->plan_inputs.pointers,
                                        .input_count = job->plan_inputs.count,
                                        .concurrency = concurrency};
  CLEAVE_TRY(cleave_stage_create(stages->communicator, &source, status, &stages->stage, error));
  uint64_t start = cleave_clock_now();
  status = make_session(stages->stage, job, error);
  job->compile_ms = cleave_clock_ms(start, cleave_clock_now());
  return cleave_run_stages_agree(stages, status, error);
}

cleave_status_t cleave_run_stages_run(cleave_run_stages_t *stages, cleave_job_t *job,
                                      cleave_stage_load_t *load, cleave_error_t *error) {
  CLEAVE_TRY(cleave_stage_run(stages->stage, job->session, load, error));
  job->outputs = stages->stage->outputs;
  return CLEAVE_OK;
}

/* ---- what came of it ---- */

enum { NUMBERS = sizeof(cleave_run_process_t) / sizeof(double) };

cleave_status_t cleave_run_stages_gather(cleave_run_stages_t *stages, const cleave_job_t *job,
                                         int64_t requests, cleave_error_t *error) {
  const cleave_stage_t *stage = stages->stage;
  const cleave_communicator_t *communicator = stages->communicator;
  double runs = requests > 0 ? (double)requests : 1.0;
  double sent = 0.0;
  for (size_t k = 0; k < stage->sends.list.count; k++) {
    const cleave_stage_link_t *link = &stage->sends.list.items[k];
    sent += (double)link->bytes * link->target_count;
  }
  stages->processes = cleave_allocate_zeroed((size_t)communicator->count, sizeof *stages->processes);
  if (stages->processes == NULL) {
    return cleave_error_out_of_memory(error);
  }
  stages->processes[communicator->rank] =
      (cleave_run_process_t){.compute_ms = stage->compute_ms / runs,
                             .waited_ms = stage->waited_ms / runs,
                             .sent_bytes = sent,
                             .packed_bytes = (double)cleave_session_memory(job->session).persistent_bytes,
                             .peak_mb = cleave_resident_peak()};
  return cleave_communicator_sum(communicator, CLEAVE_DTYPE_F64, stages->processes,
                                 (int64_t)communicator->count * NUMBERS, error);
}

void cleave_run_stages_print(const cleave_run_stages_t *stages) {
  cleave_text_t rows = {0};
  char text[4][32];
  if (stages->processes == NULL) {
    return;
  }
  cleave_text_add(&rows, "process\tcomputes ms\twaits ms\tsends\tpacked weights\tpeak\n");
  for (int32_t k = 0; k < stages->communicator->count; k++) {
    const cleave_run_process_t *process = &stages->processes[k];
    cleave_text_show(&rows, "%d\t%s\t%s\t%s\t%s\t%.0f MiB\n", (int)k,
                     cleave_times_format(process->compute_ms, text[0], sizeof text[0]),
                     cleave_times_format(process->waited_ms, text[1], sizeof text[1]),
                     cleave_output_bytes(process->sent_bytes, text[2], sizeof text[2]),
                     cleave_output_bytes(process->packed_bytes, text[3], sizeof text[3]), process->peak_mb);
  }
  cleave_print("per request:\n");
  cleave_output_table(&rows, "rrrrrr");
}

json_t *cleave_run_stages_json(const cleave_run_stages_t *stages) {
  if (stages->processes == NULL) {
    return json_null();
  }
  json_t *list = json_array();
  for (int32_t k = 0; k < stages->communicator->count; k++) {
    const cleave_run_process_t *process = &stages->processes[k];
    (void)json_array_append_new(
        list, json_pack("{s:f, s:f, s:f, s:f, s:f}", "compute_ms", process->compute_ms, "waited_ms",
                        process->waited_ms, "sent_bytes", process->sent_bytes, "packed_bytes",
                        process->packed_bytes, "peak_rss_mb", process->peak_mb));
  }
  return list;
}

void cleave_run_stages_deinit(cleave_run_stages_t *stages, cleave_job_t *job) {
  if (stages->stage != NULL) {
    cleave_session_destroy(job->session);
    job->session = NULL;
  }
  cleave_stage_destroy(stages->stage);
  cleave_free(stages->processes);
  cleave_communicator_close(stages->communicator);
}
