// SPDX-License-Identifier: Apache-2.0
// The program, and what subjects call. Nothing that a backend accepted may fail, and all that it refused is
// printed with its reason at the end of a subject.
//
//   sweep [--verbose] [--imperative] [--blind] [--load LIBRARY] [--backend NAME] [--kernels] [--gradients]
//         [--seed N] [--every N [--from K]] [--case TEXT | SUBJECT...]
//
// --load adds the backend of a library, with the rule file of its name, --isolate in a process of its own;
// --kernels runs every case on cpu with programs of backends/kernels, also for single nodes;
// --gradients compares every case's gradients with finite differences instead, and looks for each operator;
// with
// --backend or --kernels forward and backward are one graph, which is compared with the same graph on cpu;
// --imperative runs the nodes of regions one by one on their backend;
// --blind compares nothing: for kernels that have only to compile (CLEAVE_NVRTC_EMPTY of tests/cuda).
// --every runs one case of N, from the first or from the K-th one: N processes share all cases.
// --verbose prints each case before it runs, which tells where a crash was; --case runs one text alone, both
// as single nodes and by the rules; --seed draws other random cases than the ones that are tested always.
#include "sweep.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/registry/registry.h"
#include "sweep_case.h"
#include "system/clock.h"

void sweep_add_reason(sweep_t *sweep, const char *backend, const char *text) {
  char line[256];
  (void)snprintf(line, sizeof line, "%s: %.240s", backend, text);
  for (size_t k = 0; k < sweep->reason_count; k++) {
    if (strcmp(sweep->reasons[k].text, line) == 0) {
      sweep->reasons[k].count++;
      return;
    }
  }
  if (sweep->reason_count < SWEEP_MAX_REASONS) {
    sweep_reason_t *reason = &sweep->reasons[sweep->reason_count++];
    (void)memcpy(reason->text, line, sizeof line);
    (void)snprintf(reason->example, sizeof reason->example, "%.159s", sweep->text);
    reason->count = 1;
  }
}

/* ---- what subjects call ---- */

#define SWEEP_FORMAT(sweep, format)                                    \
  do {                                                                 \
    va_list list;                                                      \
    va_start(list, format);                                            \
    (void)vsnprintf((sweep)->text, sizeof(sweep)->text, format, list); \
    va_end(list);                                                      \
  } while (0)

void sweep_nodes(sweep_t *sweep, const char *format, ...) {
  SWEEP_FORMAT(sweep, format);
  sweep_case_run(sweep, sweep->kernels, SWEEP_ANY_FUSION, NULL);
}

void sweep_rules(sweep_t *sweep, const char *format, ...) {
  SWEEP_FORMAT(sweep, format);
  sweep_case_run(sweep, true, SWEEP_ANY_FUSION, NULL);
}

void sweep_fused(sweep_t *sweep, uint32_t nodes, const char *format, ...) {
  SWEEP_FORMAT(sweep, format);
  sweep_case_run(sweep, true, sweep->kernels ? SWEEP_ANY_FUSION : nodes, NULL);
}

void sweep_fused_by(sweep_t *sweep, const char *backend, uint32_t nodes, const char *format, ...) {
  SWEEP_FORMAT(sweep, format);
  sweep_case_run(sweep, true, sweep->kernels ? SWEEP_ANY_FUSION : nodes, backend);
}

void sweep_set_threads(sweep_t *sweep, int32_t threads) {
  sweep->threads = threads;
}

void sweep_set_slack(sweep_t *sweep, double slack) {
  sweep->slack = slack;
}

uint32_t sweep_below(sweep_t *sweep, uint32_t bound) {
  sweep->random ^= sweep->random << 13;
  sweep->random ^= sweep->random >> 7;
  sweep->random ^= sweep->random << 17;
  return (uint32_t)((sweep->random >> 16) % bound);
}

/* ---- the program ---- */

static const struct {
  const char *name;
  void (*run)(sweep_t *sweep);
} subjects[] = {
#define SWEEP_ENTRY(name) {#name, sweep_##name},
    SWEEP_SUBJECTS(SWEEP_ENTRY)
#undef SWEEP_ENTRY
};
enum { SUBJECT_COUNT = sizeof subjects / sizeof subjects[0] };

static void start_subject(sweep_t *sweep, const char *name) {
  sweep->subject = name;
  sweep->threads = 0;
  sweep->turn = 0;
  sweep->slack = 1.0;
  sweep->random = UINT64_C(0x9e3779b97f4a7c15) * (2 * sweep->seed + 1);
  sweep->tally = (sweep_tally_t){0};
  sweep->reason_count = 0;
}

static void print_subject(const sweep_t *sweep, double ms) {
  const sweep_tally_t *tally = &sweep->tally;
  for (size_t k = 0; k < sweep->reason_count; k++) {
    const sweep_reason_t *reason = &sweep->reasons[k];
    printf("refused %u times by %s\n  as in '%s'\n", reason->count, reason->text, reason->example);
  }
  printf("%s: %u cases, %u refused, %u fell back, %u failed; at worst %.2f of the tolerance; %.1f s\n",
         sweep->subject, tally->cases, tally->refused, tally->fallbacks, tally->failed, tally->worst,
         ms / 1e3);
  (void)fflush(stdout);
}

static bool load_library(const char *path, bool is_isolated) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status = is_isolated ? cleave_registry_load_isolated(NULL, path, NULL, NULL, &error)
                                       : cleave_registry_load(NULL, path, NULL, &error);
  bool is_loaded = status == CLEAVE_OK;
  if (!is_loaded) {
    printf("%s\n", error.message);
  }
  return is_loaded;
}

/* Backends that cannot start here (a GPU that is missing) are left out, unless one is asked for by name. */
static void find_backends(sweep_t *sweep) {
  for (uint32_t k = 0; k < cleave_backend_count(NULL) && k < SWEEP_MAX_BACKENDS; k++) {
    cleave_backend_info_t info = {.size = sizeof info};
    bool is_ready = cleave_backend_describe(NULL, k, &info, NULL) == CLEAVE_OK && info.is_ready;
    sweep->is_left_out[k] = sweep->only_backend == NULL && !is_ready;
    if (sweep->is_left_out[k]) {
      printf("without %s: %s\n", cleave_backend_name(NULL, k), info.reason);
    }
  }
}

/* Rules of every backend that has some. */
static bool load_rules(sweep_t *sweep) {
  for (uint32_t k = 0; k < cleave_backend_count(NULL) && k < SWEEP_MAX_BACKENDS; k++) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    char path[512];
    const char *name = cleave_backend_name(NULL, k);
    bool is_kernels = sweep->kernels && strcmp(name, "cpu") == 0;
    (void)snprintf(path, sizeof path, "%s/rules/%s.lua", CLEAVE_SOURCE_DIR, is_kernels ? "pointwise" : name);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
      continue;
    }
    (void)fclose(file);
    static const cleave_setting_t settings[] = {{.name = "min_nodes", .value = "1"},
                                                {.name = "min_bytes", .value = "0"},
                                                {.name = "min_gain", .value = "0"},
                                                {.name = "join_run", .value = "1"}};
    if (cleave_rules_load(NULL, &(cleave_rule_source_t){.path = path},
                          &(cleave_script_settings_t){.items = settings, .count = is_kernels ? 4 : 0}, NULL,
                          &sweep->rules[k], &error) != CLEAVE_OK) {
      printf("%s\n", error.message);
      return false;
    }
  }
  return true;
}

static bool is_chosen(const char *subject, int count, char **names) {
  for (int k = 0; k < count; k++) {
    if (strcmp(names[k], subject) == 0) {
      return true;
    }
  }
  return count == 0;
}

static uint32_t run_subjects(sweep_t *sweep, int count, char **names) {
  uint32_t failed = 0;
  for (size_t k = 0; k < SUBJECT_COUNT; k++) {
    if (is_chosen(subjects[k].name, count, names)) {
      uint64_t start = cleave_clock_now();
      start_subject(sweep, subjects[k].name);
      subjects[k].run(sweep);
      print_subject(sweep, cleave_clock_ms(start, cleave_clock_now()));
      failed += sweep->tally.failed;
    }
  }
  return failed;
}

int main(int argc, char **argv) {
  static sweep_t sweep;
  const char *text = NULL;
  uint32_t failed = 0;
  int next = 1;
  for (; next < argc && strncmp(argv[next], "--", 2) == 0; next++) {
    if (strcmp(argv[next], "--verbose") == 0) {
      sweep.verbose = true;
    } else if (strcmp(argv[next], "--imperative") == 0) {
      sweep.imperative = true;
    } else if (strcmp(argv[next], "--blind") == 0) {
      sweep.blind = true;
    } else if ((strcmp(argv[next], "--load") == 0 || strcmp(argv[next], "--isolate") == 0) &&
               next + 1 < argc) {
      bool is_isolated = strcmp(argv[next], "--isolate") == 0;
      if (!load_library(argv[++next], is_isolated)) {
        return EXIT_FAILURE;
      }
    } else if (strcmp(argv[next], "--backend") == 0 && next + 1 < argc) {
      sweep.only_backend = argv[++next];
    } else if (strcmp(argv[next], "--kernels") == 0) {
      sweep.kernels = true;
      sweep.only_backend = "cpu";
    } else if (strcmp(argv[next], "--gradients") == 0) {
      sweep.gradients = true;
    } else if (strcmp(argv[next], "--seed") == 0 && next + 1 < argc) {
      sweep.seed = strtoull(argv[++next], NULL, 10);
    } else if (strcmp(argv[next], "--every") == 0 && next + 1 < argc) {
      sweep.every = (uint32_t)strtoul(argv[++next], NULL, 10);
    } else if (strcmp(argv[next], "--from") == 0 && next + 1 < argc) {
      sweep.from = (uint32_t)strtoul(argv[++next], NULL, 10);
    } else if (strcmp(argv[next], "--case") == 0 && next + 1 < argc) {
      text = argv[++next];
    } else {
      printf(
          "usage: %s [--verbose] [--imperative] [--blind] [--load LIBRARY | --isolate LIBRARY] [--backend "
          "NAME] "
          "[--kernels] [--gradients] [--seed N] [--every N [--from K]] [--case TEXT | SUBJECT...]\n",
          argv[0]);
      return EXIT_FAILURE;
    }
  }
  find_backends(&sweep);
  if (!load_rules(&sweep)) {
    return EXIT_FAILURE;
  }
  if (text != NULL) {
    start_subject(&sweep, "case");
    sweep_nodes(&sweep, "%s", text);
    sweep_rules(&sweep, "%s", text);
    print_subject(&sweep, 0.0);
    failed = sweep.tally.failed;
  } else {
    failed = run_subjects(&sweep, argc - next, argv + next);
    failed +=
        sweep.gradients && sweep.only_backend == NULL && next == argc ? sweep_gradient_operators(&sweep) : 0;
  }
  for (uint32_t k = 0; k < SWEEP_MAX_BACKENDS; k++) {
    cleave_rules_destroy(sweep.rules[k]);
  }
  cleave_array_free(&sweep.seen);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
