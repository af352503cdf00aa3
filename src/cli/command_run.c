// SPDX-License-Identifier: Apache-2.0
// cleave run: loads, partitions, compiles, runs, checks and measures.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/job.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "cli/report/report_devices.h"
#include "cli/report/run_requests.h"
#include "cli/report/run_watch.h"
#include "cli/report/times.h"
#include "runtime/model/model.h"
#include "runtime/session/profile.h"
#include "system/clock.h"
#include "system/threads.h"
#include "tools/verify/check.h"

/* Without --repeat: at least MIN_RUNS, then as many as fit into BUDGET_MS, at most MAX_RUNS. */
enum { MIN_RUNS = 3, MAX_RUNS = 50, BUDGET_MS = 1000, PROFILE_LINES = 20 };
#define UNSET INT64_C(-1)

/* How one output compares. */
typedef struct check_line {
  const char *name;
  cleave_check_result_t result;
  cleave_text_t explanation;
} check_line_t;

typedef struct checks {
  check_line_t *lines;
  uint32_t count; /* 0: not asked for */
  bool matches;
} checks_t;

typedef struct run {
  cleave_job_options_t options;
  cleave_job_t job;
  cleave_check_tolerance_t tolerance;
  int64_t warmup;
  int64_t repeat;
  bool verify;
  bool json;
  bool watch;
  bool interrupted; /* while --watch waited for the first plan */
  bool rule_stats;
  const char *profile_path;
  checks_t data;      /* against --data */
  checks_t reference; /* against the unpartitioned graph */
  CLEAVE_ARRAY(double) times;
  double first_ms;
  double total_ms;
  cleave_profile_t profile;
  cleave_run_requests_t requests;
} run_t;

/* ---- checks ---- */

static void free_checks(checks_t *checks) {
  for (uint32_t k = 0; k < checks->count; k++) {
    cleave_text_deinit(&checks->lines[k].explanation);
  }
  cleave_free(checks->lines);
  *checks = (checks_t){0};
}

static cleave_status_t compare_session(const run_t *run, const cleave_session_t *session,
                                       cleave_tensor_t *const *expected, checks_t *checks,
                                       cleave_error_t *error) {
  uint32_t count = cleave_model_output_count(run->job.model);
  checks->lines = cleave_allocate_zeroed(count, sizeof *checks->lines);
  if (checks->lines == NULL) {
    return cleave_error_out_of_memory(error);
  }
  checks->matches = true;
  for (uint32_t k = 0; k < count; k++) {
    check_line_t *line = &checks->lines[k];
    cleave_port_t port;
    cleave_tensor_view_t actual;
    checks->count = k + 1;
    CLEAVE_TRY(cleave_model_output(run->job.model, k, &port, error));
    CLEAVE_TRY(cleave_session_output(session, k, &actual, error));
    CLEAVE_TRY(cleave_check_tensor(&actual, expected[k], &run->tolerance, &line->result, error));
    line->name = port.name;
    cleave_check_explain(port.name, &actual, expected[k], &line->result, &line->explanation);
    checks->matches = checks->matches && line->result.matches;
  }
  return CLEAVE_OK;
}

/* Of the sessions that took requests, the first whose outputs differ is reported. */
static cleave_status_t compare_outputs(const run_t *run, cleave_tensor_t *const *expected, checks_t *checks,
                                       cleave_error_t *error) {
  CLEAVE_TRY(compare_session(run, run->job.session, expected, checks, error));
  for (int64_t k = 0; k + 1 < run->requests.concurrency && checks->matches; k++) {
    free_checks(checks);
    CLEAVE_TRY(compare_session(run, run->requests.sessions[k], expected, checks, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t check(run_t *run, cleave_error_t *error) {
  const cleave_job_t *job = &run->job;
  uint32_t count = cleave_model_output_count(job->model);
  cleave_status_t status = CLEAVE_OK;
  cleave_tensor_t **expected = cleave_allocate_zeroed(count, sizeof *expected);
  cleave_tensor_t **reference = cleave_allocate_zeroed(count, sizeof *reference);
  if (expected == NULL || reference == NULL) {
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
  }
  if (run->options.data != NULL) {
    CLEAVE_TRY_CLEANUP(cleave_outputs_load(run->options.data, expected, count, error));
    CLEAVE_TRY_CLEANUP(compare_outputs(run, expected, &run->data, error));
  }
  if (run->verify) {
    CLEAVE_TRY_CLEANUP(cleave_check_reference(cleave_model_graph(job->model), job->inputs.tensors,
                                              job->inputs.count, (int32_t)run->options.threads, reference,
                                              count, error));
    CLEAVE_TRY_CLEANUP(compare_outputs(run, reference, &run->reference, error));
  }
cleanup:
  for (uint32_t k = 0; k < count; k++) {
    cleave_tensor_release(expected == NULL ? NULL : expected[k]);
    cleave_tensor_release(reference == NULL ? NULL : reference[k]);
  }
  cleave_free(expected);
  cleave_free(reference);
  return status;
}

/* ---- measuring ---- */

static cleave_status_t run_once(run_t *run, double *out_ms, cleave_error_t *error) {
  uint64_t start = cleave_clock_now();
  CLEAVE_TRY(cleave_session_run(run->job.session, error));
  *out_ms = cleave_clock_ms(start, cleave_clock_now());
  return CLEAVE_OK;
}

static bool wants_more(const run_t *run) {
  int64_t done = (int64_t)run->times.count;
  if (run->repeat != UNSET) {
    return done < run->repeat;
  }
  return done < MIN_RUNS || (done < MAX_RUNS && run->total_ms < BUDGET_MS);
}

static cleave_status_t measure(run_t *run, cleave_error_t *error) {
  for (int64_t k = 0; k < run->warmup; k++) {
    double ms = 0.0;
    CLEAVE_TRY(run_once(run, &ms, error));
  }
  while (wants_more(run)) {
    double ms = 0.0;
    CLEAVE_TRY(run_once(run, &ms, error));
    CLEAVE_ARRAY_PUSH(&run->times, ms, error);
    run->total_ms += ms;
    if (run->profile_path != NULL) {
      CLEAVE_TRY(cleave_profile_add(&run->profile, run->job.session, run->job.plan, error));
    }
  }
  return CLEAVE_OK;
}

static double quantile(const run_t *run, double share) {
  return cleave_times_quantile(run->times.items, run->times.count, share);
}

/* ---- reporting ---- */

static int64_t threads_of(const run_t *run) {
  return run->options.threads == 0 ? cleave_threads_available() : run->options.threads;
}

static void print_checks(const checks_t *checks, const char *against) {
  if (checks->count == 0) {
    return;
  }
  cleave_print("\n" CLEAVE_TRUSTED "%s" CLEAVE_TRUSTED " against %s\n",
               cleave_output_style(checks->matches ? CLEAVE_STYLE_GOOD : CLEAVE_STYLE_BAD),
               checks->matches ? "all outputs match" : "outputs differ",
               cleave_output_style(CLEAVE_STYLE_PLAIN), against);
  cleave_table_t table = {.columns = 4, .alignment = "lrrl"};
  cleave_table_cell(&table, "output");
  cleave_table_cell(&table, "largest difference");
  cleave_table_cell(&table, "relative");
  cleave_table_cell(&table, "verdict");
  for (uint32_t k = 0; k < checks->count; k++) {
    const check_line_t *line = &checks->lines[k];
    cleave_table_cell(&table, "%s", line->name);
    cleave_table_cell(&table, "%.3g", line->result.difference.max_absolute);
    cleave_table_cell(&table, "%.3g", line->result.relative);
    cleave_table_cell(&table, "%s", line->result.matches ? "match" : "differ");
  }
  cleave_table_print(&table);
  cleave_table_deinit(&table);
  for (uint32_t k = 0; k < checks->count; k++) {
    if (!checks->lines[k].result.matches) {
      cleave_print("  %s\n", cleave_text_get(&checks->lines[k].explanation));
    }
  }
}

static void print_profile(const run_t *run) {
  if (run->profile_path == NULL) {
    return;
  }
  double total = 0.0;
  for (size_t k = 0; k < run->profile.regions.count; k++) {
    total += run->profile.regions.items[k].total_ms;
  }
  for (int by_region = 1; by_region >= 0; by_region--) {
    const cleave_profile_line_t *lines =
        by_region != 0 ? run->profile.regions.items : run->profile.lines.items;
    size_t count = by_region != 0 ? run->profile.regions.count : run->profile.lines.count;
    cleave_print("\ntime per %s\n", by_region != 0 ? "region" : "fusion and operator");
    cleave_table_t table = {.columns = 5, .alignment = "llrrr"};
    cleave_table_cell(&table, by_region != 0 ? "region" : "fusion or operator");
    cleave_table_cell(&table, "backend");
    cleave_table_cell(&table, "steps");
    cleave_table_cell(&table, "ms");
    cleave_table_cell(&table, "share");
    for (size_t k = 0; k < count && k < PROFILE_LINES; k++) {
      char bytes[32];
      bool is_copy = lines[k].bytes > 0;
      cleave_table_cell(&table, "%s%s%s", lines[k].label, is_copy ? ", " : "",
                        is_copy ? cleave_output_bytes((double)lines[k].bytes, bytes, sizeof bytes) : "");
      cleave_table_cell(&table, "%s", lines[k].backend);
      cleave_table_cell(&table, "%u", (unsigned)lines[k].count);
      cleave_table_cell(&table, "%.3f", lines[k].total_ms);
      cleave_table_cell(&table, "%.1f %%", total > 0.0 ? lines[k].total_ms / total * 100.0 : 0.0);
    }
    cleave_table_print(&table);
    cleave_table_deinit(&table);
    if (count > PROFILE_LINES) {
      cleave_print("  and %zu more\n", count - PROFILE_LINES);
    }
  }
  cleave_print("\ntrace written to %s\n", run->profile_path);
}

static void print_drawn(const cleave_inputs_t *inputs) {
  const char *drawn = cleave_text_get(&inputs->drawn);
  while (*drawn != '\0') {
    size_t length = strcspn(drawn, "\n");
    cleave_print("  input %.*s\n", (int)length, drawn);
    drawn += length + (drawn[length] == '\n' ? 1 : 0);
  }
}

static void print_report(const run_t *run) {
  const cleave_job_t *job = &run->job;
  char bytes[3][32];
  cleave_session_memory_t memory = cleave_session_memory(job->session);
  cleave_print(CLEAVE_TRUSTED "%s" CLEAVE_TRUSTED "\n", cleave_output_style(CLEAVE_STYLE_BOLD),
               run->options.model, cleave_output_style(CLEAVE_STYLE_PLAIN));
  cleave_report_sizes(&job->inputs.sizes);
  print_drawn(&job->inputs);
  if (job->plan_inputs.count > job->inputs.count) { /* rules added some */
    cleave_report_sizes(&job->plan_inputs.sizes);
    print_drawn(&job->plan_inputs);
  }
  cleave_print("\n");
  cleave_report_plan(job->plan);
  if (run->rule_stats) {
    cleave_report_rule_stats(job->plan);
  }
  for (uint32_t k = 0; k < cleave_session_note_count(job->session); k++) {
    cleave_print("  %s\n", cleave_session_note(job->session, k));
  }
  print_checks(&run->data, run->options.data);
  print_checks(&run->reference, "the unpartitioned graph on cpu");
  cleave_print("\nload %.1f ms, partition %.2f ms (rule files %.1f ms), compile %.1f ms",
               job->load_ms + job->bind_ms, job->partition_ms, job->rules_ms, job->compile_ms);
  const char *folder = cleave_common_session().blob_folder;
  if (folder != NULL) {
    cleave_print(" (%u of %u programs from %s)", (unsigned)cleave_session_loaded_count(job->session),
                 (unsigned)cleave_session_program_count(job->session), folder);
  }
  cleave_print("\n");
  char times[4][32];
  cleave_print("first run %s ms", cleave_times_format(run->first_ms, times[0], sizeof times[0]));
  if (run->times.count > 0) {
    cleave_print(", then " CLEAVE_TRUSTED "median %s ms" CLEAVE_TRUSTED
                 ", min %s, p90 %s (%zu runs, %d threads)",
                 cleave_output_style(CLEAVE_STYLE_BOLD),
                 cleave_times_format(quantile(run, 0.5), times[1], sizeof times[1]),
                 cleave_output_style(CLEAVE_STYLE_PLAIN),
                 cleave_times_format(run->times.items[0], times[2], sizeof times[2]),
                 cleave_times_format(quantile(run, 0.9), times[3], sizeof times[3]), run->times.count,
                 (int)threads_of(run));
  }
  cleave_print("\n");
  cleave_run_requests_print(&run->requests, threads_of(run));
  cleave_print("memory%s: values %s (unshared %s), packed weights %s, peak %.0f MiB\n",
               run->requests.count > 0 ? " of each session" : "",
               cleave_output_bytes((double)(memory.values_bytes + memory.outputs_bytes +
                                            memory.dynamic_bytes + memory.workspace_bytes),
                                   bytes[0], sizeof bytes[0]),
               cleave_output_bytes((double)(memory.unshared_bytes + memory.outputs_bytes +
                                            memory.dynamic_bytes + memory.workspace_bytes),
                                   bytes[1], sizeof bytes[1]),
               cleave_output_bytes((double)memory.persistent_bytes, bytes[2], sizeof bytes[2]),
               cleave_job_peak_rss());
  cleave_report_devices(job->session);
  print_profile(run);
}

static json_t *json_checks(const checks_t *checks) {
  if (checks->count == 0) {
    return json_null();
  }
  json_t *outputs = json_array();
  for (uint32_t k = 0; k < checks->count; k++) {
    const check_line_t *line = &checks->lines[k];
    const cleave_check_result_t *result = &line->result;
    json_t *output = json_pack("{s:s, s:b, s:I}", "name", line->name, "match", result->matches, "mismatches",
                               (json_int_t)result->difference.mismatches);
    bool is_finite = result->difference.same_type && isfinite(result->difference.max_absolute);
    (void)json_object_set_new(output, "max_absolute",
                              is_finite ? json_real(result->difference.max_absolute) : json_null());
    (void)json_object_set_new(output, "max_relative", is_finite ? json_real(result->relative) : json_null());
    if (!result->matches) {
      (void)json_object_set_new(output, "reason", json_string(cleave_text_get(&line->explanation)));
    }
    (void)json_array_append_new(outputs, output);
  }
  return json_pack("{s:b, s:o}", "match", checks->matches, "outputs", outputs);
}

static json_t *json_profile(const run_t *run) {
  json_t *lines = json_array();
  for (size_t k = 0; k < run->profile.lines.count; k++) {
    const cleave_profile_line_t *line = &run->profile.lines.items[k];
    (void)json_array_append_new(
        lines, json_pack("{s:s, s:s, s:i, s:f, s:I}", "label", line->label, "backend", line->backend, "steps",
                         (int)line->count, "ms", line->total_ms, "bytes", (json_int_t)line->bytes));
  }
  return lines;
}

static json_t *result_json(const run_t *run) {
  const cleave_job_t *job = &run->job;
  cleave_session_memory_t memory = cleave_session_memory(job->session);
  json_t *json =
      json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "model", run->options.model,
                "load_ms", job->load_ms, "bind_ms", job->bind_ms, "rules_ms", job->rules_ms, "partition_ms",
                job->partition_ms, "compile_ms", job->compile_ms, "first_ms", run->first_ms, "median_ms",
                quantile(run, 0.5), "min_ms", run->times.count == 0 ? 0.0 : run->times.items[0], "p90_ms",
                quantile(run, 0.9), "peak_rss_mb", cleave_job_peak_rss());
  if (json == NULL) {
    return NULL;
  }
  (void)json_object_set_new(json, "runs", json_integer((json_int_t)run->times.count));
  (void)json_object_set_new(json, "threads", json_integer(threads_of(run)));
  (void)json_object_set_new(json, "requests", cleave_run_requests_json(&run->requests, threads_of(run)));
  (void)json_object_set_new(json, "programs",
                            json_pack("{s:i, s:i}", "count", (int)cleave_session_program_count(job->session),
                                      "loaded", (int)cleave_session_loaded_count(job->session)));
  (void)json_object_set_new(json, "sizes", cleave_sizes_json(&job->inputs.sizes));
  cleave_report_plan_json(job->plan, json);
  (void)json_object_set_new(json, "check", json_checks(&run->data));
  (void)json_object_set_new(json, "verify", json_checks(&run->reference));
  (void)json_object_set_new(
      json, "memory",
      json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "values", (json_int_t)memory.values_bytes, "unshared",
                (json_int_t)memory.unshared_bytes, "workspace", (json_int_t)memory.workspace_bytes, "outputs",
                (json_int_t)memory.outputs_bytes, "persistent", (json_int_t)memory.persistent_bytes,
                "dynamic", (json_int_t)memory.dynamic_bytes));
  (void)json_object_set_new(json, "devices", cleave_report_devices_json(job->session));
  json_t *notes = json_array();
  for (uint32_t k = 0; k < cleave_session_note_count(job->session); k++) {
    (void)json_array_append_new(notes, json_string(cleave_session_note(job->session, k)));
  }
  (void)json_object_set_new(json, "notes", notes);
  if (run->rule_stats) {
    cleave_report_rule_stats_json(job->plan, json);
  }
  if (run->profile_path != NULL) {
    (void)json_object_set_new(json, "profile", json_profile(run));
  }
  return json;
}

/* One object, or with --watch the first of many, one a line. */
static int print_json(run_t *run) {
  json_t *json = result_json(run);
  if (!run->watch || json == NULL) {
    return cleave_output_json(json);
  }
  (void)json_object_set_new(json, "event", json_string("result"));
  cleave_run_watch_line(json);
  return cleave_run_watch(&run->job, true);
}

/* ---- the command ---- */

static bool runs_on(const cleave_session_t *session, const char *backend) {
  for (uint32_t k = 0; k < cleave_session_step_count(session); k++) {
    if (strcmp(cleave_session_step(session, k).backend, backend) == 0) {
      return true;
    }
  }
  return false;
}

/* Options that nothing reads are most likely a mistake. */
static void warn_of_options(const cleave_session_t *session) {
  const cleave_session_options_t options = cleave_common_session();
  for (uint32_t k = 0; k < options.backend_option_count; k++) {
    const cleave_backend_option_t *option = &options.backend_options[k];
    if (!runs_on(session, option->backend)) {
      cleave_print_error("cleave: warning: option '%s.%s' has no effect: nothing runs on %s\n",
                         option->backend, option->key, option->backend);
    }
  }
}

static cleave_status_t work(run_t *run, cleave_error_t *error) {
  run->options.profile = run->profile_path != NULL;
  CLEAVE_TRY(cleave_job_load(&run->job, &run->options, error));
  CLEAVE_TRY(cleave_job_bind(&run->job, error));
  if (run->watch) {
    CLEAVE_TRY(cleave_program_cache_create(&run->job.programs, error));
    CLEAVE_TRY(cleave_run_watch_prepare(&run->job, run->json, &run->interrupted, error));
    if (run->interrupted) {
      return CLEAVE_OK;
    }
  } else {
    CLEAVE_TRY(cleave_job_partition(&run->job, error));
    CLEAVE_TRY(cleave_job_compile(&run->job, error));
  }
  warn_of_options(run->job.session);
  CLEAVE_TRY(run_once(run, &run->first_ms, error));
  if (run->requests.count > 0) {
    CLEAVE_TRY(cleave_run_requests_run(&run->requests, &run->job, error));
    return check(run, error);
  }
  CLEAVE_TRY(check(run, error));
  CLEAVE_TRY(measure(run, error));
  if (run->profile_path != NULL) {
    if (run->profile.run_count == 0) {
      CLEAVE_TRY(cleave_profile_add(&run->profile, run->job.session, run->job.plan, error));
    }
    cleave_profile_finish(&run->profile);
    CLEAVE_TRY(cleave_profile_write_trace(run->profile_path, run->job.session, run->job.plan, error));
  }
  cleave_times_sort(run->times.items, run->times.count);
  return CLEAVE_OK;
}

static const char *find_misuse(run_t *run) {
  const char *misuse = cleave_run_requests_check(&run->requests);
  bool is_measured = run->watch || run->profile_path != NULL || run->repeat != UNSET;
  return misuse == NULL && run->requests.count > 0 && is_measured
             ? "option '--requests' does not go with --watch, --profile and --repeat"
             : misuse;
}

static int run_command(int argc, char **argv) {
  run_t run = {.tolerance = {.rtol = 1e-3, .atol = 1e-5, .scaled = true},
               .warmup = 1,
               .repeat = UNSET,
               .requests = CLEAVE_RUN_REQUESTS_UNSET};
  const cleave_option_t options[] = {
      {"rules", 0, CLEAVE_OPTION_LIST, "FILE",
       "rule file to partition with, or a loaded library that brings rules (LIBRARY or LIBRARY/RULE); may be "
       "given many times, they run in order (default: the plan in an exported .onnx file, or none: every "
       "node runs on its own)",
       &run.options.rules},
      {"plan", 0, CLEAVE_OPTION_TEXT, "FILE.json",
       "run the plan that 'cleave partition -o FILE.json' saved: no rule file is read. Refused if it is of "
       "another model, or if a backend is missing or refuses a region",
       &run.options.plan},
      {"set", 0, CLEAVE_OPTION_LIST, "NAME=VALUE",
       "option of a rule file or of the model script; an option that none of them has is an error",
       &run.options.settings},
      {"backend", 0, CLEAVE_OPTION_TEXT, "NAME",
       "without rule files: one region rule over all that this backend supports, cpu runs the rest; with "
       "rule files: the backend in place of theirs (default: cpu)",
       &run.options.backend},
      {"imperative", 0, CLEAVE_OPTION_FLAG, NULL,
       "run every node of a region by itself on the region's backend: fusions are dissolved, and nodes that "
       "the backend does not run alone run on cpu",
       &run.options.imperative},
      {"input", 0, CLEAVE_OPTION_LIST, "NAME=FILE",
       "tensor for an input, .npy or .pb; the other inputs are random", &run.options.files},
      {"set-constant", 0, CLEAVE_OPTION_LIST, "NAME=FILE",
       "tensor that replaces a constant of the model (a weight), .npy or .pb of the same dtype and shape; "
       "may be given many times. Constants that are folded from it are computed again, also with --plan",
       &run.options.constants},
      {"data", 0, CLEAVE_OPTION_TEXT, "DIR",
       "folder with input_N.pb and output_N.pb, by position: run on these inputs and compare the outputs; "
       "exit status 0 only if all match",
       &run.options.data},
      {"rtol", 0, CLEAVE_OPTION_NUMBER, "R", "relative tolerance (default: 1e-3)", &run.tolerance.rtol},
      {"atol", 0, CLEAVE_OPTION_NUMBER, "A",
       "absolute tolerance, scaled to the output's size (default: 1e-5): a value matches if |found - "
       "expected| <= A * max(1, largest |expected| of the output) + R * |expected|",
       &run.tolerance.atol},
      {"seed", 0, CLEAVE_OPTION_INT, "S", "seed of random inputs (default: 0)", &run.options.seed},
      {"shape", 0, CLEAVE_OPTION_LIST, "NAME=SIZES", CLEAVE_SHAPE_HELP, &run.options.shapes},
      {"threads", 0, CLEAVE_OPTION_INT, "N", "threads to use (default: 0, one per usable processor)",
       &run.options.threads},
      {"warmup", 0, CLEAVE_OPTION_INT, "N", "runs after the first that are not measured (default: 1)",
       &run.warmup},
      {"repeat", 0, CLEAVE_OPTION_INT, "N",
       "runs that are measured (default: what fits into a second, 3 to 50)", &run.repeat},
      {"requests", 0, CLEAVE_OPTION_INT, "N",
       "measure N requests in place of single runs; each session begins its next request when the last one "
       "is answered. Prints throughput and latencies. Checks compare the outputs of all sessions",
       &run.requests.count},
      {"concurrency", 0, CLEAVE_OPTION_INT, "K",
       "with --requests: K at a time, each on a session of its own with --threads threads (default: 1; "
       "threads: the usable processors divided by K)",
       &run.requests.concurrency},
      {"verify", 0, CLEAVE_OPTION_FLAG, NULL,
       "also run the graph unpartitioned on cpu, and report the largest difference per output; exit status "
       "0 only if all match",
       &run.verify},
      {"profile", 0, CLEAVE_OPTION_TEXT, "FILE",
       "write a Chrome trace of the last run, and print time per region and fusion", &run.profile_path},
      {"rule-stats", 0, CLEAVE_OPTION_FLAG, NULL,
       "print for each rule what it tried and found, its calls of Lua, and its time", &run.rule_stats},
      {"watch", 0, CLEAVE_OPTION_FLAG, NULL,
       "then watch the rule files and what they include: after each save load them again, print what changed "
       "in the plan, how outputs differ and both times; Ctrl-C ends. The first load may fail, too",
       &run.watch},
      {"json", 0, CLEAVE_OPTION_FLAG, NULL,
       "print everything as JSON; with --watch one object a line, the first result among them", &run.json},
  };
  cleave_arguments_t arguments = {
      .command = "run",
      .operands = "MODEL",
      .about =
          "Runs a model (.onnx, a .lua model script, or the .json of a region): partitions it by rules, "
          "compiles it, runs it, and\n"
          "says what the rules did and how long everything took. Inputs that are not given are "
          "random:\nfloats from a normal distribution, integers 0 or 1.",
      .options = options,
      .option_count = sizeof options / sizeof options[0],
      .makes_sessions = true,
      .least_operands = 1,
      .most_operands = 1};
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_arguments_parse(&arguments, argc, argv, &status)) {
    run.options.model = arguments.found.items[0];
    run.options.fallback = cleave_common_fallback();
    const char *misuse = find_misuse(&run);
    run.options.threads = cleave_run_requests_threads(&run.requests, run.options.threads);
    if (misuse != NULL) {
      status = cleave_arguments_fail("run", "%s", misuse);
    } else if (run.options.plan != NULL && (run.options.rules.count > 0 || run.options.backend != NULL)) {
      status = cleave_arguments_fail("run", "option '--plan' takes the place of --rules and --backend");
    } else if (run.watch && (run.options.rules.count == 0 || run.profile_path != NULL)) {
      status = cleave_arguments_fail("run", run.profile_path != NULL
                                                ? "option '--watch' does not go with --profile"
                                                : "option '--watch' is for '--rules'");
    } else if (work(&run, &error) != CLEAVE_OK) {
      status = cleave_output_error(&error);
    } else if (run.interrupted) {
      status = CLEAVE_EXIT_OK;
    } else if (run.json) {
      status = print_json(&run);
    } else {
      print_report(&run);
      status = run.watch ? cleave_run_watch(&run.job, false) : status;
    }
    bool is_wrong =
        (run.data.count > 0 && !run.data.matches) || (run.reference.count > 0 && !run.reference.matches);
    status = status == CLEAVE_EXIT_OK && is_wrong ? CLEAVE_EXIT_FAILURE : status;
  }
  free_checks(&run.data);
  free_checks(&run.reference);
  cleave_array_free(&run.times);
  cleave_profile_deinit(&run.profile);
  cleave_run_requests_deinit(&run.requests);
  cleave_job_deinit(&run.job);
  cleave_arguments_free(&arguments);
  return status;
}

const cleave_command_t cleave_command_run = {.name = "run",
                                             .summary = "run a model, by rules or without, and measure it",
                                             .order = 10,
                                             .run = run_command};
