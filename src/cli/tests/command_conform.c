// SPDX-License-Identifier: Apache-2.0
// cleave conform: ONNX's test folders. Every test runs in a process of its own with a time limit, so that one
// that crashes or hangs is a failed test and nothing more. The parent only walks folders and collects lines:
// it never computes, because a process that has started threads must not fork.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/common/command.h"
#include "cli/common/job.h"
#include "cli/common/output.h"
#include "cli/tests/test_folders.h"
#include "system/clock.h"
#include "tools/verify/check.h"

typedef struct conform {
  cleave_job_options_t job;
  cleave_check_tolerance_t tolerance;
  int64_t limit_seconds;
  const char *only;
  bool json;
  bool verbose;
  cleave_paths_t tests; /* folders with model.onnx */
} conform_t;

/* ---- one test, in the child ---- */

static cleave_status_t check_outputs(const cleave_job_t *job, const conform_t *conform, const char *data,
                                     cleave_text_t *failure, cleave_error_t *error) {
  uint32_t count = cleave_model_output_count(job->model);
  cleave_status_t status = CLEAVE_OK;
  cleave_tensor_t **expected = cleave_allocate_zeroed(count, sizeof *expected);
  CLEAVE_TRY_MEMORY(expected, error);
  CLEAVE_TRY_CLEANUP(cleave_outputs_load(data, expected, count, error));
  for (uint32_t k = 0; k < count && failure->length == 0; k++) {
    cleave_tensor_view_t actual;
    cleave_port_t port = {.size = sizeof port};
    cleave_check_result_t result;
    CLEAVE_TRY_CLEANUP(cleave_session_output(job->session, k, &actual, error));
    CLEAVE_TRY_CLEANUP(cleave_model_output(job->model, k, &port, error));
    CLEAVE_TRY_CLEANUP(cleave_check_tensor(&actual, expected[k], &conform->tolerance, &result, error));
    cleave_check_explain(port.name, &actual, expected[k], &result, failure);
  }
cleanup:
  for (uint32_t k = 0; k < count; k++) {
    cleave_tensor_release(expected[k]);
  }
  cleave_free(expected);
  return status;
}

/* Where rules or a backend are given: the operators that are left to cpu, each once, and what the session
 * notes. */
static void add_left(const cleave_job_t *job, cleave_text_t *left) {
  const cleave_graph_t *graph = job->plan->graph;
  for (uint32_t k = 0; k < cleave_graph_node_bound(graph); k++) {
    cleave_node_t node = {k};
    if (!cleave_node_is_live(graph, node) || job->plan->node_region[k] != CLEAVE_INDEX_NONE ||
        cleave_text_has_word(cleave_text_get(left), cleave_node_op(graph, node)->name)) {
      continue;
    }
    cleave_text_show(left, "%s%s", left->length > 0 ? " " : "on cpu: ", cleave_node_op(graph, node)->name);
  }
  for (uint32_t k = 0; k < cleave_session_note_count(job->session); k++) {
    cleave_text_show(left, "%s%s", left->length > 0 ? "; " : "", cleave_session_note(job->session, k));
  }
}

static cleave_status_t run_set(const conform_t *conform, const char *model, const char *data,
                               cleave_text_t *failure, cleave_text_t *left, cleave_error_t *error) {
  cleave_job_options_t options = conform->job;
  options.model = model;
  options.data = data;
  cleave_job_t job = {0};
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_job_load(&job, &options, error));
  CLEAVE_TRY_CLEANUP(cleave_job_bind(&job, error));
  CLEAVE_TRY_CLEANUP(cleave_job_partition(&job, error));
  CLEAVE_TRY_CLEANUP(cleave_job_compile(&job, error));
  CLEAVE_TRY_CLEANUP(cleave_session_run(job.session, error));
  CLEAVE_TRY_CLEANUP(check_outputs(&job, conform, data, failure, error));
  if (left->length == 0 && (options.backend != NULL || options.rules.count > 0)) {
    add_left(&job, left);
  }
cleanup:
  cleave_job_deinit(&job);
  return status;
}

/* Runs all data sets of a test; the first failure is left in `failure`, what ran on cpu in `left`. */
static cleave_status_t run_test(const conform_t *conform, const char *folder, cleave_text_t *failure,
                                cleave_text_t *left, cleave_error_t *error) {
  char model[4096];
  cleave_paths_t sets = {0};
  if (snprintf(model, sizeof model, "%s/model.onnx", folder) >= (int)sizeof model) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "the path is too long");
  }
  cleave_status_t status = cleave_test_folders_sets(&sets, folder, error);
  if (status == CLEAVE_OK && sets.count == 0) {
    status = cleave_error_set(error, CLEAVE_ERROR_IO, "there is no test_data_set_*");
  }
  for (size_t k = 0; k < sets.count && status == CLEAVE_OK && failure->length == 0; k++) {
    status = run_set(conform, model, sets.items[k], failure, left, error);
  }
  cleave_paths_deinit(&sets);
  return status;
}

/* Takes the folder's own path out of a message: the test's name stands before it already. */
static void shorten(const char *folder, char *message) {
  char prefix[4096];
  int length = snprintf(prefix, sizeof prefix, "%s/model.onnx: ", folder);
  if (length > 0 && (size_t)length < sizeof prefix && strncmp(message, prefix, (size_t)length) == 0) {
    memmove(message, message + length, strlen(message) - (size_t)length + 1);
  }
}

/* What a child writes: that the test passes and what ran on cpu, or why it fails. */
enum { PASSES = '+', FAILS = '-' };

static void run_child(const conform_t *conform, const char *folder, int pipe_end) {
  cleave_text_t failure = {0};
  cleave_text_t left = {0};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (run_test(conform, folder, &failure, &left, &error) != CLEAVE_OK) {
    shorten(folder, error.message);
    cleave_text_add(&failure, error.message[0] == '\0' ? "failed without a message" : error.message);
  }
  cleave_text_t line = {0};
  const bool passes = failure.length == 0;
  cleave_text_format(&line, "%c%s", passes ? PASSES : FAILS, cleave_text_get(passes ? &left : &failure));
  const char *text = cleave_text_get(&line);
  size_t rest = strlen(text);
  while (rest > 0) {
    ssize_t written = write(pipe_end, text, rest);
    if (written <= 0) {
      break;
    }
    text += written;
    rest -= (size_t)written;
  }
  cleave_text_deinit(&line);
  cleave_text_deinit(&left);
  cleave_text_deinit(&failure);
}

/* ---- the parent ---- */

/* Reads what the child says until it ends or the time is up; *out_late tells which. */
static void read_line(int pipe_end, int64_t limit_seconds, cleave_text_t *line, bool *out_late) {
  uint64_t start = cleave_clock_now();
  *out_late = false;
  for (;;) {
    double left = (double)limit_seconds * 1e3 - cleave_clock_ms(start, cleave_clock_now());
    struct pollfd waiting = {.fd = pipe_end, .events = POLLIN};
    int ready = left > 0.0 ? poll(&waiting, 1, (int)left + 1) : 0;
    if (ready == 0) {
      *out_late = true;
      return;
    }
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    char chunk[1024];
    ssize_t count = read(pipe_end, chunk, sizeof chunk);
    if (count <= 0) {
      return;
    }
    cleave_text_append(line, chunk, (size_t)count);
  }
}

static cleave_status_t run_apart(const conform_t *conform, const char *folder, cleave_text_t *line,
                                 cleave_error_t *error) {
  int ends[2];
  if (pipe(ends) != 0) {
    return cleave_error_set(error, CLEAVE_ERROR_IO, "no pipe: %s", strerror(errno));
  }
  (void)fflush(stdout);
  (void)fflush(stderr);
  pid_t child = fork();
  if (child == 0) {
    (void)close(ends[0]);
    run_child(conform, folder, ends[1]);
    _exit(0);
  }
  (void)close(ends[1]);
  if (child < 0) {
    (void)close(ends[0]);
    return cleave_error_set(error, CLEAVE_ERROR_IO, "no process: %s", strerror(errno));
  }
  bool is_late = false;
  read_line(ends[0], conform->limit_seconds, line, &is_late);
  if (is_late) {
    (void)kill(child, SIGKILL);
  }
  (void)close(ends[0]);
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  if (is_late) {
    line->length = 0;
    cleave_text_format(line, "%cnot done after %lld s", FAILS, (long long)conform->limit_seconds);
  } else if (WIFSIGNALED(state)) {
    line->length = 0;
    cleave_text_format(line, "%ccrashed (signal %d)", FAILS, WTERMSIG(state));
  } else if (WIFEXITED(state) && WEXITSTATUS(state) != 0) {
    line->length = 0;
    cleave_text_format(line, "%ccrashed (exit status %d)", FAILS, WEXITSTATUS(state));
  }
  if (line->length == 0) {
    cleave_text_format(line, "%cended without a word", FAILS);
  }
  return cleave_text_check(line, error);
}

static int run_all(const conform_t *conform) {
  size_t passed = 0;
  size_t failed = 0;
  json_t *failures = json_array();
  cleave_error_t error = CLEAVE_ERROR_INIT;
  for (size_t k = 0; k < conform->tests.count; k++) {
    const char *folder = conform->tests.items[k];
    const char *name = cleave_path_name(folder);
    cleave_text_t line = {0};
    cleave_output_progress("%zu of %zu: %s", k + 1, conform->tests.count, name);
    if (run_apart(conform, folder, &line, &error) != CLEAVE_OK) {
      cleave_text_deinit(&line);
      json_decref(failures);
      return cleave_output_error(&error);
    }
    bool is_passed = line.data[0] == PASSES;
    const char *text = line.data + 1;
    passed += is_passed;
    failed += !is_passed;
    cleave_output_progress_end();
    if (!is_passed && conform->json) {
      (void)json_array_append_new(failures, json_pack("{s:s, s:s}", "test", name, "reason", text));
    } else if (!is_passed) {
      cleave_print("%s: %s\n", name, text);
    } else if (conform->verbose && !conform->json) {
      cleave_print("%s: ok%s%s\n", name, text[0] == '\0' ? "" : "; ", text);
    }
    cleave_text_deinit(&line);
  }
  if (conform->json) {
    (void)cleave_output_json(json_pack("{s:I, s:I, s:o}", "passed", (json_int_t)passed, "failed",
                                       (json_int_t)failed, "failures", failures));
  } else {
    json_decref(failures);
    cleave_print("%zu passed, %zu failed\n", passed, failed);
  }
  return failed == 0 && passed > 0 ? CLEAVE_EXIT_OK : CLEAVE_EXIT_FAILURE;
}

static int run(cleave_arguments_t *arguments) {
  conform_t conform = {.job = {.threads = 1}, .tolerance = {.rtol = 1e-3, .atol = 1e-7}, .limit_seconds = 20};
  const cleave_option_t options[] = {
      CLEAVE_LIST(&conform.job.rules, "rules", "FILE",
                  "rule file to partition with; may be given many times"),
      CLEAVE_JOB_SETTINGS(&conform.job),
      CLEAVE_TEXT(&conform.job.backend, "backend", "NAME",
                  "backend that runs what it supports, and cpu the rest; with rule files, in place of theirs "
                  "(default: cpu)"),
      CLEAVE_FLAG(&conform.job.imperative, "imperative",
                  "run every node of a region by itself on the region's backend; fusions are dissolved"),
      CLEAVE_NUMBER(&conform.tolerance.rtol, "rtol", "R", "relative tolerance (default: 1e-3)"),
      CLEAVE_NUMBER(
          &conform.tolerance.atol, "atol", "A",
          "absolute tolerance (default: 1e-7): a value passes if |found - expected| <= A + R * |expected|"),
      CLEAVE_INT(&conform.job.threads, "threads", "N",
                 "threads that a test may use (default: 1; 0: one per usable processor)"),
      CLEAVE_INT(&conform.limit_seconds, "limit", "S", "seconds that a test may take (default: 20)"),
      CLEAVE_TEXT(&conform.only, "only", "TEXT", "only tests whose names contain this"),
      {"verbose", 'v', CLEAVE_OPTION_FLAG, NULL,
       "name the tests that pass too, and what of them is left to cpu", &conform.verbose},
      CLEAVE_FLAG(&conform.json, "json", "print passed, failed and failures as JSON"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    cleave_status_t found = CLEAVE_OK;
    for (size_t k = 0; k < arguments->found.count && found == CLEAVE_OK; k++) {
      found = cleave_test_folders_find(&conform.tests, arguments->found.items[k], conform.only, &error);
    }
    if (found == CLEAVE_OK && conform.tests.count == 0) {
      found = cleave_error_set(&error, CLEAVE_ERROR_IO, "%s: no folder with model.onnx below",
                               arguments->found.items[0]);
    }
    status = found == CLEAVE_OK ? run_all(&conform) : cleave_output_error(&error);
  }
  cleave_paths_deinit(&conform.tests);
  return status;
}

CLEAVE_COMMAND_DEFINE(
    conform, 40, "DIR...", run, "run ONNX conformance tests",
    "Runs ONNX test folders: every folder at or below DIR with model.onnx and test_data_set_*,\n"
    "whose input_N.pb and output_N.pb belong to inputs and outputs by position. Prints a line per\n"
    "failure with its reason, and the counts. Exit status 0 only if all pass.",
    .makes_sessions = true, .min_operands = 1, .max_operands = SIZE_MAX)
