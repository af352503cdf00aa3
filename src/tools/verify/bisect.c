// SPDX-License-Identifier: Apache-2.0
// Every test runs the rules anew with some of their applications left out, and makes a session of what comes
// out.
#include "tools/verify/bisect.h"

#include <math.h>
#include <string.h>

#include "backend/region/view.h"
#include "runtime/session/session.h"
#include "system/clock.h"
#include "tools/verify/applications.h"
#include "tools/verify/paired.h"
#include "tools/verify/rounding.h"

enum { DEFAULT_TESTS = 2000, MIN_PAIRS = 7, MAX_PAIRS = 25, PAIRS_MS = 400 };
#define DEFAULT_GAIN 0.05

typedef struct bisection {
  cleave_rule_list_t *list;
  const cleave_graph_t *graph;
  const cleave_bisect_options_t *options;
  cleave_bisect_report_t *report;
  cleave_applications_t applications;
  cleave_tensor_view_t *views; /* of the inputs */
  const cleave_tensor_view_t **pointers;
  cleave_tensor_t **expected; /* outputs on cpu */
  uint32_t output_count;
  cleave_rounding_t rounding; /* of the model on cpu */
} bisection_t;

/* ---- tests ---- */

typedef struct trial {
  cleave_plan_t *plan;
  cleave_session_t *session;
} trial_t;

static void end_trial(trial_t *trial) {
  cleave_session_destroy(trial->session);
  cleave_plan_destroy(trial->plan);
  *trial = (trial_t){0};
}

/* A session of what is allowed now. */
static cleave_status_t begin_trial(bisection_t *bisection, uint32_t suspects, trial_t *trial,
                                   cleave_error_t *error) {
  const cleave_bisect_options_t *options = bisection->options;
  *trial = (trial_t){0};
  bisection->report->tests++;
  if (options->progress != NULL) {
    options->progress(options->context, bisection->report->tests, suspects);
  }
  CLEAVE_TRY(cleave_rule_list_partition(bisection->list, bisection->graph, &trial->plan, error));
  cleave_session_options_t session = {.size = sizeof session};
  if (options->session != NULL) {
    session = *options->session;
  }
  session.threads = options->threads;
  CLEAVE_TRY(cleave_session_create_planned(bisection->graph, trial->plan, bisection->pointers,
                                           options->input_count, &session, &trial->session, error));
  for (uint32_t k = 0; k < options->input_count; k++) {
    CLEAVE_TRY(cleave_session_set_input(trial->session, k, &bisection->views[k], error));
  }
  return CLEAVE_OK;
}

/* Largest difference of the outputs; infinite if types differ. *out_broken by the threshold. */
static cleave_status_t difference_of(bisection_t *bisection, const cleave_session_t *session,
                                     double *out_value, bool *out_broken, cleave_error_t *error) {
  double threshold = bisection->options->threshold;
  *out_value = 0.0;
  *out_broken = false;
  for (uint32_t k = 0; k < bisection->output_count; k++) {
    cleave_tensor_view_t view;
    cleave_check_result_t result;
    cleave_check_tolerance_t tolerance = {.atol = threshold};
    CLEAVE_TRY(cleave_session_output(session, k, &view, error));
    CLEAVE_TRY(
        threshold >= 0.0
            ? cleave_check_tensor(&view, bisection->expected[k], &tolerance, &result, error)
            : cleave_rounding_check(&bisection->rounding, k, &view, bisection->expected[k], &result, error));
    double value = result.difference.same_type ? result.difference.max_absolute : INFINITY;
    *out_value = value > *out_value ? value : *out_value;
    *out_broken = *out_broken || !result.matches;
  }
  return CLEAVE_OK;
}

static cleave_status_t test_accuracy(bisection_t *bisection, uint32_t suspects, double *out_value,
                                     bool *out_broken, cleave_error_t *error) {
  trial_t trial;
  cleave_status_t status = begin_trial(bisection, suspects, &trial, error);
  CLEAVE_THEN(status, cleave_session_run(trial.session, error));
  CLEAVE_THEN(status, difference_of(bisection, trial.session, out_value, out_broken, error));
  end_trial(&trial);
  return status;
}

static bool has_tests_left(const bisection_t *bisection) {
  uint32_t most = bisection->options->most_tests;
  return bisection->report->tests < (most == 0 ? DEFAULT_TESTS : most);
}

/* ---- accuracy: delta debugging ---- */

/* Allows `set` without its part [from, to) (`inside` false), or that part only. */
static void allow_part(bisection_t *bisection, const uint32_t *set, uint32_t count, uint32_t from,
                       uint32_t to, bool inside) {
  cleave_applications_allow_all(&bisection->applications, false);
  for (uint32_t k = 0; k < count; k++) {
    bisection->applications.allowed[set[k]] = (k >= from && k < to) == inside;
  }
}

/* Makes the set smaller while it stays broken; ends when no single application can go. */
static cleave_status_t minimise(bisection_t *bisection, uint32_t *set, uint32_t *count,
                                cleave_error_t *error) {
  uint32_t parts = 2;
  while (*count >= 2 && has_tests_left(bisection)) {
    parts = parts < *count ? parts : *count;
    bool smaller = false;
    for (int inside = 1; inside >= 0 && !smaller; inside--) {
      for (uint32_t p = 0; p < parts && !smaller && has_tests_left(bisection); p++) {
        uint32_t from = (uint32_t)((uint64_t)*count * p / parts);
        uint32_t to = (uint32_t)((uint64_t)*count * (p + 1) / parts);
        double value = 0.0;
        allow_part(bisection, set, *count, from, to, inside != 0);
        CLEAVE_TRY(test_accuracy(bisection, *count, &value, &smaller, error));
        if (smaller && inside != 0) {
          memmove(set, set + from, (to - from) * sizeof *set);
          *count = to - from;
          parts = 2;
        } else if (smaller) {
          memmove(set + from, set + to, (*count - to) * sizeof *set);
          *count -= to - from;
          parts = parts > 2 ? parts - 1 : 2;
        }
      }
    }
    if (!smaller && parts == *count) {
      return CLEAVE_OK;
    }
    parts = smaller ? parts : parts * 2;
  }
  bisection->report->is_complete = *count < 2;
  return CLEAVE_OK;
}

static cleave_status_t add_culprit(bisection_t *bisection, uint32_t application, double value,
                                   double reference, cleave_error_t *error) {
  cleave_bisect_culprit_t culprit = cleave_applications_describe(&bisection->applications, application);
  culprit.application = application;
  culprit.value = value;
  culprit.reference = reference;
  CLEAVE_ARRAY_PUSH(&bisection->report->culprits, culprit, error);
  return CLEAVE_OK;
}

static cleave_status_t search_accuracy(bisection_t *bisection, cleave_error_t *error) {
  cleave_bisect_report_t *report = bisection->report;
  bool broken = false;
  cleave_applications_allow_all(&bisection->applications, true);
  CLEAVE_TRY(test_accuracy(bisection, bisection->applications.count, &report->value_all, &broken, error));
  report->value_found = report->value_all;
  if (!broken) {
    return CLEAVE_OK;
  }
  cleave_status_t status = CLEAVE_OK;
  uint32_t count = bisection->applications.count;
  uint32_t *set = cleave_allocate((size_t)count + 1, sizeof *set);
  CLEAVE_TRY_MEMORY(set, error);
  for (uint32_t k = 0; k < count; k++) {
    set[k] = k;
  }
  CLEAVE_TRY_CLEANUP(minimise(bisection, set, &count, error));
  allow_part(bisection, set, count, 0, count, true);
  CLEAVE_TRY_CLEANUP(test_accuracy(bisection, count, &report->value_found, &broken, error));
  cleave_applications_allow_all(&bisection->applications, true);
  for (uint32_t k = 0; k < count; k++) {
    bisection->applications.allowed[set[k]] = false;
  }
  CLEAVE_TRY_CLEANUP(test_accuracy(bisection, count, &report->value_others, &broken, error));
  for (uint32_t k = 0; k < count; k++) {
    double value = report->value_found;
    if (count > 1) {
      allow_part(bisection, set, count, k, k + 1, true);
      CLEAVE_TRY_CLEANUP(test_accuracy(bisection, count, &value, &broken, error));
    }
    CLEAVE_TRY_CLEANUP(add_culprit(bisection, set[k], value, 0.0, error));
  }
cleanup:
  cleave_free(set);
  return status;
}

/* ---- speed: leaving out ---- */

/* Measures all applications against what is allowed now: pairs at least MIN_PAIRS, and more while there is
 * time. */
static cleave_status_t test_speed(bisection_t *bisection, cleave_session_t *all, uint32_t suspects,
                                  cleave_paired_summary_t *out_summary, cleave_error_t *error) {
  trial_t trial;
  cleave_paired_t paired = {.count = 0};
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(begin_trial(bisection, suspects, &trial, error));
  CLEAVE_TRY_CLEANUP(cleave_session_run(all, error));
  CLEAVE_TRY_CLEANUP(cleave_session_run(trial.session, error));
  uint64_t start = cleave_clock_now();
  while (paired.count < MAX_PAIRS &&
         (paired.count < MIN_PAIRS || cleave_clock_ms(start, cleave_clock_now()) < PAIRS_MS)) {
    CLEAVE_TRY_CLEANUP(cleave_paired_run(&paired, all, trial.session, error));
  }
  cleave_paired_summarise(&paired, out_summary);
cleanup:
  end_trial(&trial);
  return status;
}

static bool is_faster(const bisection_t *bisection, const cleave_paired_summary_t *summary) {
  double gain = bisection->options->threshold < 0.0 ? DEFAULT_GAIN : bisection->options->threshold;
  return summary->change < 1.0 / (1.0 + gain) - 1.0 && summary->high < 0.0;
}

/* One application at a time; a gain counts if a second measurement sees it too. */
static cleave_status_t search_one_by_one(bisection_t *bisection, cleave_session_t *all,
                                         cleave_error_t *error) {
  for (uint32_t a = 0; a < bisection->applications.count; a++) {
    cleave_paired_summary_t summary;
    bool faster = true;
    if (!has_tests_left(bisection)) {
      bisection->report->is_complete = false;
      return CLEAVE_OK;
    }
    for (int k = 0; k < 2 && faster; k++) {
      cleave_applications_allow_all(&bisection->applications, true);
      bisection->applications.allowed[a] = false;
      CLEAVE_TRY(test_speed(bisection, all, bisection->applications.count - a, &summary, error));
      faster = is_faster(bisection, &summary);
    }
    if (faster) {
      CLEAVE_TRY(add_culprit(bisection, a, summary.second_ms, summary.first_ms, error));
    }
  }
  return CLEAVE_OK;
}

/* Takes the culprit out that gains least alone. */
static void drop_weakest(cleave_bisect_report_t *report) {
  size_t weakest = 0;
  for (size_t k = 1; k < report->culprits.count; k++) {
    const cleave_bisect_culprit_t *culprit = &report->culprits.items[k];
    const cleave_bisect_culprit_t *least = &report->culprits.items[weakest];
    weakest = culprit->value * least->reference > least->value * culprit->reference ? k : weakest;
  }
  report->culprits.count--;
  memmove(&report->culprits.items[weakest], &report->culprits.items[weakest + 1],
          (report->culprits.count - weakest) * sizeof *report->culprits.items);
}

/* Gains that are measured one by one may not add up, and the best of many measurements is lucky. So all
 * culprits are left out at once and measured afresh, until the gain holds twice. */
static cleave_status_t confirm(bisection_t *bisection, cleave_session_t *all, cleave_error_t *error) {
  cleave_bisect_report_t *report = bisection->report;
  report->candidate_count = (uint32_t)report->culprits.count;
  while (report->culprits.count > 0) {
    cleave_paired_summary_t summary;
    bool holds = true;
    for (int k = 0; k < 2 && holds; k++) {
      cleave_applications_allow_all(&bisection->applications, true);
      for (size_t c = 0; c < report->culprits.count; c++) {
        bisection->applications.allowed[report->culprits.items[c].application] = false;
      }
      CLEAVE_TRY(test_speed(bisection, all, (uint32_t)report->culprits.count, &summary, error));
      holds = is_faster(bisection, &summary);
    }
    if (holds) {
      report->value_others = summary.first_ms;
      report->value_found = summary.second_ms;
      report->change = summary.change;
      report->change_low = summary.low;
      report->change_high = summary.high;
      return CLEAVE_OK;
    }
    drop_weakest(report);
  }
  return CLEAVE_OK;
}

static cleave_status_t search_speed(bisection_t *bisection, cleave_error_t *error) {
  cleave_bisect_report_t *report = bisection->report;
  trial_t all;
  cleave_paired_summary_t summary;
  cleave_status_t status = CLEAVE_OK;
  cleave_applications_allow_all(&bisection->applications, true);
  CLEAVE_TRY_CLEANUP(begin_trial(bisection, bisection->applications.count, &all, error));
  CLEAVE_TRY_CLEANUP(test_speed(bisection, all.session, bisection->applications.count, &summary, error));
  report->value_all = summary.first_ms;
  report->value_found = report->value_all;
  report->value_others = report->value_all;
  CLEAVE_TRY_CLEANUP(search_one_by_one(bisection, all.session, error));
  CLEAVE_TRY_CLEANUP(confirm(bisection, all.session, error));
cleanup:
  end_trial(&all);
  return status;
}

/* ---- all of it ---- */

static cleave_status_t prepare(bisection_t *bisection, cleave_error_t *error) {
  const cleave_bisect_options_t *options = bisection->options;
  bisection->output_count = (uint32_t)bisection->graph->outputs.count;
  bisection->views = cleave_allocate_zeroed(options->input_count, sizeof *bisection->views);
  bisection->pointers = cleave_allocate_zeroed(options->input_count, sizeof *bisection->pointers);
  bisection->expected = cleave_allocate_zeroed(bisection->output_count, sizeof(cleave_tensor_t *));
  CLEAVE_TRY_MEMORY(bisection->views != NULL && bisection->pointers != NULL && bisection->expected != NULL,
                    error);
  for (size_t k = 0; k < options->input_count; k++) {
    bisection->views[k] = cleave_tensor_view(options->inputs[k]);
    bisection->pointers[k] = &bisection->views[k];
  }
  CLEAVE_TRY(cleave_rule_list_partition(bisection->list, bisection->graph, &bisection->report->plan, error));
  const cleave_plan_t *plan = bisection->report->plan;
  CLEAVE_TRY(cleave_applications_list(plan, &bisection->applications, error));
  bisection->report->application_count = bisection->applications.count;
  bisection->list->allow = cleave_applications_is_allowed;
  bisection->list->allow_context = &bisection->applications;
  if (options->metric == CLEAVE_BISECT_MS) {
    return CLEAVE_OK;
  }
  bisection->rounding =
      (cleave_rounding_t){.graph = bisection->graph,
                          .inputs = options->inputs,
                          .input_count = options->input_count,
                          .values = bisection->expected,
                          .value_count = bisection->output_count,
                          .threads = options->threads,
                          .digits = cleave_rounding_digits(plan->regions, plan->region_count)};
  return cleave_check_reference(bisection->graph, options->inputs, options->input_count, options->threads,
                                bisection->expected, bisection->output_count, error);
}

cleave_status_t cleave_rules_bisect(cleave_rule_list_t *list, const cleave_graph_t *graph,
                                    const cleave_bisect_options_t *options,
                                    cleave_bisect_report_t *out_report, cleave_error_t *error) {
  *out_report = (cleave_bisect_report_t){.is_complete = true};
  bisection_t bisection = {.list = list, .graph = graph, .options = options, .report = out_report};
  list->allow = NULL;
  cleave_status_t status = prepare(&bisection, error);
  CLEAVE_THEN(status, options->metric == CLEAVE_BISECT_MS ? search_speed(&bisection, error)
                                                          : search_accuracy(&bisection, error));
  list->allow = NULL;
  list->allow_context = NULL;
  cleave_rounding_deinit(&bisection.rounding);
  for (uint32_t k = 0; bisection.expected != NULL && k < bisection.output_count; k++) {
    cleave_tensor_release(bisection.expected[k]);
  }
  cleave_free(bisection.expected);
  cleave_free((void *)bisection.pointers);
  cleave_free(bisection.views);
  cleave_applications_deinit(&bisection.applications);
  return status;
}

void cleave_bisect_report_deinit(cleave_bisect_report_t *report) {
  cleave_plan_destroy(report->plan);
  cleave_array_free(&report->culprits);
  *report = (cleave_bisect_report_t){0};
}
