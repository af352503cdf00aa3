// SPDX-License-Identifier: Apache-2.0
// Every trial loads the rules with another list `keep` and runs the model once. Two sessions, all in the low
// precision and all in float32, stay throughout, so that backends which share packed weights pack each once.
#include "tools/precision/precision.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ops/ops.h"
#include "runtime/model/rule_list.h"
#include "system/clock.h"
#include "tools/verify/check.h"

enum { TIMED_RUNS = 5 };

/* The smallest share of all arithmetic for which a part is tried. */
static const double MIN_SHARE = 1e-5;
/* A part whose error is at most this multiple of that of float32 is not in the low precision at all. */
static const double NO_CHANGE = 4.0;

typedef struct finder {
  const cleave_graph_t *graph;
  const cleave_precision_options_t *options;
  cleave_precision_report_t *report;
  cleave_tensor_view_t *views; /* of the inputs */
  const cleave_tensor_view_t **pointers;
  cleave_tensor_t **expected;
  uint32_t output_count;
  uint32_t trials_expected;
} finder_t;

typedef struct trial {
  cleave_plan_t *plan;
  cleave_session_t *session;
  double error;
} trial_t;

static void end_trial(trial_t *trial) {
  cleave_session_destroy(trial->session);
  cleave_plan_destroy(trial->plan);
  *trial = (trial_t){0};
}

/* ---- trials ---- */

static cleave_status_t make_plan(const finder_t *finder, const char *precision, const char *keep,
                                 cleave_plan_t **out_plan, cleave_error_t *error) {
  const cleave_partition_request_t *own = finder->options->request;
  cleave_partition_request_t request = *own;
  cleave_rule_list_t list = {0};
  cleave_status_t status = CLEAVE_OK;
  cleave_setting_t *settings = cleave_allocate(own->setting_count + 2, sizeof *settings);
  bool *known = cleave_allocate_zeroed(own->setting_count + 2, sizeof *known);
  CLEAVE_TRY_MEMORY_CLEANUP(settings != NULL && known != NULL, error);
  for (size_t k = 0; k < own->setting_count; k++) {
    settings[k] = own->settings[k];
    known[k] = finder->options->known != NULL && finder->options->known[k];
  }
  settings[request.setting_count++] = (cleave_setting_t){.name = "precision", .value = precision};
  settings[request.setting_count++] = (cleave_setting_t){.name = "keep", .value = keep};
  request.settings = settings;
  cleave_rule_list_options_t options = {.known = known};
  CLEAVE_TRY_CLEANUP(cleave_rule_list_load(&list, finder->graph->context, &request, &options, error));
  CLEAVE_TRY_CLEANUP(cleave_rule_list_partition(&list, finder->graph, out_plan, error));
cleanup:
  cleave_rule_list_deinit(&list);
  cleave_free(settings);
  cleave_free(known);
  return status;
}

static cleave_status_t error_of(const finder_t *finder, const cleave_session_t *session, double *out_error,
                                cleave_error_t *error) {
  const cleave_check_tolerance_t exact = {.atol = 0.0};
  *out_error = 0.0;
  for (uint32_t k = 0; k < finder->output_count; k++) {
    cleave_tensor_view_t view;
    cleave_check_result_t result;
    CLEAVE_TRY(cleave_session_output(session, k, &view, error));
    CLEAVE_TRY(cleave_check_tensor(&view, finder->expected[k], &exact, &result, error));
    bool is_number = result.difference.same_type && !isnan(result.relative);
    double value = is_number ? result.relative : INFINITY;
    *out_error = value > *out_error ? value : *out_error;
  }
  return CLEAVE_OK;
}

/* A session with these settings, and how far its outputs are off. End the trial also when this fails. */
static cleave_status_t begin_trial(finder_t *finder, const char *precision, const char *keep, trial_t *trial,
                                   cleave_error_t *error) {
  const cleave_precision_options_t *options = finder->options;
  *trial = (trial_t){0};
  if (options->progress != NULL) {
    options->progress(options->context, finder->report->trials, finder->trials_expected);
  }
  finder->report->trials++;
  CLEAVE_TRY(make_plan(finder, precision, keep, &trial->plan, error));
  cleave_session_options_t session = {.size = sizeof session};
  if (options->session != NULL) {
    session = *options->session;
  }
  session.threads = options->threads;
  CLEAVE_TRY(cleave_session_create_planned(finder->graph, trial->plan, finder->pointers, options->input_count,
                                           &session, &trial->session, error));
  for (uint32_t k = 0; k < options->input_count; k++) {
    CLEAVE_TRY(cleave_session_set_input(trial->session, k, &finder->views[k], error));
  }
  CLEAVE_TRY(cleave_session_run(trial->session, error));
  return error_of(finder, trial->session, &trial->error, error);
}

static cleave_status_t least_time(cleave_session_t *session, double *out_ms, cleave_error_t *error) {
  *out_ms = INFINITY;
  for (int k = 0; k < TIMED_RUNS; k++) {
    uint64_t start = cleave_clock_now();
    CLEAVE_TRY(cleave_session_run(session, error));
    double ms = cleave_clock_ms(start, cleave_clock_now());
    *out_ms = ms < *out_ms ? ms : *out_ms;
  }
  return CLEAVE_OK;
}

/* ---- parts ---- */

/* The attribute `precision`, or "float32". */
static const char *precision_of(const cleave_attribute_t *attributes, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    if (strcmp(attributes[k].name, "precision") == 0 && attributes[k].kind == CLEAVE_ATTRIBUTE_STRING) {
      return attributes[k].s;
    }
  }
  return "float32";
}

static bool is_low(const cleave_plan_region_t *region) {
  return strcmp(precision_of(region->attributes, region->attribute_count), "float32") != 0;
}

/* Can the option `keep` hold it? */
static bool is_text_of_keep(const char *name) {
  return name != NULL && name[0] != '\0' && strpbrk(name, ",*") == NULL;
}

/* Called by its node with the most arithmetic: other ones may be what the rules added. */
static cleave_status_t add_part(finder_t *finder, uint32_t fusion, const cleave_node_t *nodes, uint32_t count,
                                cleave_error_t *error) {
  const cleave_graph_t *graph = finder->report->plan->graph;
  cleave_precision_part_t part = {.fusion = fusion, .node = nodes[0]};
  double most = -1.0;
  for (uint32_t k = 0; k < count; k++) {
    const char *name = cleave_node_name(graph, nodes[k]);
    double flops = cleave_op_flops(graph, nodes[k]);
    flops = flops > 0.0 ? flops : 0.0;
    if (is_text_of_keep(name) && flops > most) {
      part.name = name;
      most = flops;
    }
    part.flops += flops;
  }
  if (part.name != NULL) {
    CLEAVE_ARRAY_PUSH(&finder->report->parts, part, error);
  }
  return CLEAVE_OK;
}

/* The parts of a region. Of one with 8-bit integers, the fusions that have them: all else is float32. */
static cleave_status_t list_region(finder_t *finder, const cleave_plan_region_t *region,
                                   cleave_error_t *error) {
  const cleave_plan_t *plan = finder->report->plan;
  const char *precision = precision_of(region->attributes, region->attribute_count);
  bool by_fusions = strcmp(precision, "int8") == 0;
  for (uint32_t k = 0; k < region->fusion_count; k++) {
    const cleave_plan_fusion_t *fusion = &plan->fusions[region->fusions[k]];
    if (!by_fusions || strcmp(precision_of(fusion->attributes, fusion->attribute_count), precision) == 0) {
      CLEAVE_TRY(add_part(finder, region->fusions[k], fusion->nodes, fusion->node_count, error));
    }
  }
  for (uint32_t k = 0; k < region->node_count && !by_fusions; k++) {
    if (plan->node_fusion[region->nodes[k].index] == CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(add_part(finder, CLEAVE_INDEX_NONE, &region->nodes[k], 1, error));
    }
  }
  return CLEAVE_OK;
}

/* All parts of regions in the low precision that make up a share of the arithmetic. */
static cleave_status_t list_parts(finder_t *finder, cleave_error_t *error) {
  const cleave_plan_t *plan = finder->report->plan;
  for (uint32_t r = 0; r < plan->region_count; r++) {
    if (is_low(&plan->regions[r])) {
      CLEAVE_TRY(list_region(finder, &plan->regions[r], error));
    }
  }
  double whole = 0.0;
  size_t kept = 0;
  cleave_precision_part_t *parts = finder->report->parts.items;
  for (size_t k = 0; k < finder->report->parts.count; k++) {
    whole += parts[k].flops;
  }
  for (size_t k = 0; k < finder->report->parts.count; k++) {
    if (parts[k].flops >= MIN_SHARE * whole) {
      parts[kept++] = parts[k];
    }
  }
  finder->report->parts.count = kept;
  return CLEAVE_OK;
}

/* `keep` with the parts from `from` to before `to`, but for `but`. */
static void list_keep(const finder_t *finder, size_t from, size_t to, size_t but, cleave_text_t *text) {
  const char *own = finder->options->keep;
  cleave_text_deinit(text);
  if (own != NULL) {
    cleave_text_add(text, own);
  }
  for (size_t k = from; k < to; k++) {
    if (k != but) {
      cleave_text_format(text, "%s%s", text->length > 0 ? "," : "", finder->report->parts.items[k].name);
    }
  }
}

static int by_error(const void *left, const void *right) {
  const cleave_precision_part_t *a = left;
  const cleave_precision_part_t *b = right;
  return a->error == b->error  ? (int)(a->node.index > b->node.index) - (int)(a->node.index < b->node.index)
         : a->error > b->error ? -1
                               : 1;
}

/* Each part alone, then the worst first, without those that make no difference. */
static cleave_status_t measure_parts(finder_t *finder, cleave_error_t *error) {
  cleave_precision_report_t *report = finder->report;
  cleave_text_t keep = {0};
  cleave_status_t status = CLEAVE_OK;
  for (size_t k = 0; k < report->parts.count && status == CLEAVE_OK; k++) {
    trial_t trial;
    list_keep(finder, 0, report->parts.count, k, &keep);
    status = begin_trial(finder, finder->options->precision, cleave_text_get(&keep), &trial, error);
    report->parts.items[k].error = trial.error;
    end_trial(&trial);
  }
  cleave_text_deinit(&keep);
  if (status == CLEAVE_OK && report->parts.count > 0) {
    qsort(report->parts.items, report->parts.count, sizeof *report->parts.items, by_error);
    while (report->parts.count > 0 &&
           report->parts.items[report->parts.count - 1].error <= NO_CHANGE * report->error_float) {
      report->parts.count--;
    }
  }
  return status;
}

/* How few of the worst parts have to stay float32; all of them if that is not enough either. */
static cleave_status_t choose(finder_t *finder, cleave_error_t *error) {
  cleave_precision_report_t *report = finder->report;
  cleave_text_t keep = {0};
  cleave_status_t status = CLEAVE_OK;
  trial_t trial = {0};
  size_t low = 1;
  size_t high = report->parts.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    list_keep(finder, 0, middle, SIZE_MAX, &keep);
    CLEAVE_TRY_CLEANUP(
        begin_trial(finder, finder->options->precision, cleave_text_get(&keep), &trial, error));
    if (trial.error <= finder->options->max_error) {
      high = middle;
    } else {
      low = middle + 1;
    }
    end_trial(&trial);
  }
  report->kept = (uint32_t)high;
  for (size_t k = 0; k < high; k++) {
    report->parts.items[k].is_kept = true;
  }
  list_keep(finder, 0, high, SIZE_MAX, &keep);
  CLEAVE_TRY_CLEANUP(begin_trial(finder, finder->options->precision, cleave_text_get(&keep), &trial, error));
  report->error_found = trial.error;
  CLEAVE_TRY_CLEANUP(least_time(trial.session, &report->ms_found, error));
cleanup:
  end_trial(&trial);
  cleave_text_deinit(&keep);
  return status;
}

/* ---- all of it ---- */

static cleave_status_t prepare(finder_t *finder, cleave_error_t *error) {
  const cleave_precision_options_t *options = finder->options;
  finder->output_count = (uint32_t)finder->graph->outputs.count;
  finder->views = cleave_allocate_zeroed(options->input_count + 1, sizeof *finder->views);
  finder->pointers = cleave_allocate_zeroed(options->input_count + 1, sizeof *finder->pointers);
  finder->expected = cleave_allocate_zeroed((size_t)finder->output_count + 1, sizeof(cleave_tensor_t *));
  CLEAVE_TRY_MEMORY(finder->views != NULL && finder->pointers != NULL && finder->expected != NULL, error);
  for (size_t k = 0; k < options->input_count; k++) {
    finder->views[k] = cleave_tensor_view(options->inputs[k]);
    finder->pointers[k] = &finder->views[k];
  }
  return cleave_check_reference(finder->graph, options->inputs, options->input_count, options->threads,
                                finder->expected, finder->output_count, error);
}

static cleave_status_t search(finder_t *finder, trial_t *all, trial_t *plain, cleave_error_t *error) {
  cleave_precision_report_t *report = finder->report;
  const cleave_precision_options_t *options = finder->options;
  const char *own = options->keep != NULL ? options->keep : "";
  CLEAVE_TRY(begin_trial(finder, "float32", "", plain, error));
  CLEAVE_TRY(begin_trial(finder, options->precision, own, all, error));
  report->error_float = plain->error;
  report->error_all = all->error;
  report->error_found = all->error;
  CLEAVE_TRY(least_time(plain->session, &report->ms_float, error));
  CLEAVE_TRY(least_time(all->session, &report->ms_all, error));
  report->ms_found = report->ms_all;
  for (uint32_t k = 0; k < all->plan->region_count; k++) {
    report->regions += is_low(&all->plan->regions[k]) ? 1 : 0;
  }
  CLEAVE_TRY(make_plan(finder, options->precision, own, &report->plan, error));
  if (report->regions > 0 && !(all->error <= options->max_error)) {
    CLEAVE_TRY(list_parts(finder, error));
    finder->trials_expected = report->trials + (uint32_t)report->parts.count;
    CLEAVE_TRY(measure_parts(finder, error));
    if (report->parts.count > 0) {
      CLEAVE_TRY(choose(finder, error));
    }
  }
  report->is_met = report->error_found <= options->max_error;
  return CLEAVE_OK;
}

cleave_status_t cleave_precision_find(const cleave_graph_t *graph, const cleave_precision_options_t *options,
                                      cleave_precision_report_t *out_report, cleave_error_t *error) {
  *out_report = (cleave_precision_report_t){0};
  finder_t finder = {.graph = graph, .options = options, .report = out_report};
  trial_t all = {0};
  trial_t plain = {0};
  cleave_status_t status = prepare(&finder, error);
  CLEAVE_THEN(status, search(&finder, &all, &plain, error));
  end_trial(&all);
  end_trial(&plain);
  for (uint32_t k = 0; finder.expected != NULL && k < finder.output_count; k++) {
    cleave_tensor_release(finder.expected[k]);
  }
  cleave_free(finder.expected);
  cleave_free((void *)finder.pointers);
  cleave_free(finder.views);
  return status;
}

bool cleave_precision_prefers_float(const cleave_precision_report_t *report) {
  return report->regions > 0 && report->ms_found >= report->ms_float;
}

void cleave_precision_report_deinit(cleave_precision_report_t *report) {
  cleave_plan_destroy(report->plan);
  cleave_array_free(&report->parts);
  *report = (cleave_precision_report_t){0};
}
