// SPDX-License-Identifier: Apache-2.0
// The precision of regions. Rule files decide which regions compute in it, by their option `precision`, and
// backends whether they can; what came of it is read from the plans.
#include <stdio.h>
#include <string.h>

#include "base/sized.h"
#include "runtime/model/model_gradient.h"
#include "train/trainer_internal.h"

static const char OPTION[] = "precision";

const char *cleave_train_precision_name(cleave_train_precision_t precision) {
  static const char *const names[] = {"float32", "bfloat16", "float16"};
  return names[precision];
}

// ---- asking ----

static bool is_set(const cleave_partition_request_t *request) {
  for (size_t k = 0; k < request->setting_count; k++) {
    if (strcmp(request->settings[k].name, OPTION) == 0) {
      return true;
    }
  }
  return false;
}

/* The request with one setting more. */
static cleave_status_t load_asking(cleave_trainer_t *trainer, cleave_context_t *context,
                                   const cleave_partition_request_t *request, cleave_error_t *error) {
  cleave_partition_request_t asking = *request;
  cleave_setting_t *settings = cleave_allocate(request->setting_count + 1, sizeof *settings);
  CLEAVE_TRY_MEMORY(settings, error);
  for (size_t k = 0; k < request->setting_count; k++) {
    settings[k] = request->settings[k];
  }
  settings[asking.setting_count++] =
      (cleave_setting_t){OPTION, cleave_train_precision_name(trainer->options.precision)};
  asking.settings = settings;
  cleave_rule_files_destroy(trainer->rules);
  cleave_status_t status = cleave_rule_files_load(context, &asking, &trainer->rules, error);
  cleave_free(settings);
  return status;
}

cleave_status_t cleave_train_load_rules(cleave_trainer_t *trainer, cleave_context_t *context,
                                        const cleave_partition_request_t *request, cleave_error_t *error) {
  CLEAVE_TRY(cleave_rule_files_load(context, request, &trainer->rules, error));
  if (trainer->options.precision == CLEAVE_TRAIN_FLOAT32 || is_set(request)) {
    return CLEAVE_OK;
  }
  if (!cleave_rule_files_have_option(trainer->rules, OPTION)) {
    trainer->precision_missing = "no rule file has the option 'precision' (onednn has)";
    return CLEAVE_OK;
  }
  return load_asking(trainer, context, request, error);
}

// ---- what came of it ----

static uint32_t count_regions(const cleave_plan_t *plan, const char *precision) {
  uint32_t count = 0;
  for (uint32_t r = 0; r < plan->region_count; r++) {
    for (uint32_t k = 0; k < plan->regions[r].attribute_count; k++) {
      const cleave_attribute_t *attribute = &plan->regions[r].attributes[k];
      count += strcmp(attribute->name, OPTION) == 0 && attribute->kind == CLEAVE_ATTRIBUTE_STRING &&
                       strcmp(attribute->s, precision) == 0
                   ? 1
                   : 0;
    }
  }
  return count;
}

/* Finds the reason with which a backend refused the precision; NULL: none did. */
static const char *find_refusal(const cleave_plan_t *plan, const char *precision) {
  char wanted[32];
  (void)snprintf(wanted, sizeof wanted, "%s %s:", OPTION, precision);
  for (uint32_t k = 0; k < plan->note_count; k++) {
    if (plan->notes[k].reason != NULL && strstr(plan->notes[k].reason, wanted) != NULL) {
      return plan->notes[k].reason;
    }
  }
  return NULL;
}

void cleave_trainer_precision(const cleave_trainer_t *trainer, cleave_train_precision_report_t *out_report) {
  const char *name = cleave_train_precision_name(trainer->options.precision);
  bool is_asked = trainer->options.precision != CLEAVE_TRAIN_FLOAT32;
  cleave_train_precision_report_t report = {.precision = trainer->options.precision,
                                            .reason = trainer->precision_missing};
  for (size_t p = 0; is_asked && p < trainer->parts.count; p++) {
    const cleave_plan_t *plan = trainer->parts.items[p].program.plan;
    if (plan == NULL) {
      continue;
    }
    report.regions += count_regions(plan, name);
    report.reason = report.reason != NULL ? report.reason : find_refusal(plan, name);
  }
  if (report.regions > 0) {
    report.reason = NULL;
  } else if (is_asked && report.reason == NULL) {
    report.reason = "no rule made a region in it";
  }
  CLEAVE_SIZED_OUT(cleave_train_precision_report_t, &report, out_report);
}

// ---- the scale of the loss ----

void cleave_train_replay_scaling(cleave_trainer_t *trainer) {
  trainer->scaling = cleave_train_scaling_start(&trainer->options);
  for (size_t k = 0; k < trainer->history.count; k++) {
    trainer->history.items[k].scale = trainer->scaling.scale;
    (void)cleave_train_scaling_advance(&trainer->options, trainer->history.items[k].norm, &trainer->scaling);
  }
}
