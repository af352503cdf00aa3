// SPDX-License-Identifier: Apache-2.0
// cleave verify: every distinct fusion, region and rewrite against cpu. What fails is written down as a model
// of its own with its inputs, so that it can be run again; with --quarantine its rule is left out, and the
// rest is checked again.
#include <string.h>

#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/job.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "formats/onnx/onnx.h"
#include "runtime/model/model.h"
#include "runtime/model/region_graph.h"
#include "tools/verify/verify.h"

enum { MAX_QUARANTINED = 256 };

typedef struct verify {
  cleave_job_options_t options;
  cleave_job_t job;
  cleave_verify_options_t checks;
  const char *save;
  int64_t rounds;
  double rtol;
  double atol;
  bool quarantine;
  bool json;
  cleave_rule_list_t rules;
  cleave_verify_report_t report;
  json_t *dropped; /* list of rules, one object each */
  json_t *saved;   /* list of folders */
  uint32_t dropped_count;
  struct {
    char file[192];
    char name[64];
    int32_t line;
  } left_out[MAX_QUARANTINED];
} verify_t;

/* For cleave_rule_list_t.allow. */
static bool is_allowed(void *context, const cleave_graph_t *graph, const cleave_plan_rule_t *rule,
                       const cleave_node_t *nodes, uint32_t node_count) {
  const verify_t *verify = context;
  (void)graph;
  (void)nodes;
  (void)node_count;
  for (uint32_t k = 0; k < verify->dropped_count; k++) {
    if (verify->left_out[k].line == rule->line && strcmp(verify->left_out[k].name, rule->name) == 0 &&
        strcmp(verify->left_out[k].file, rule->file) == 0) {
      return false;
    }
  }
  return true;
}

static void show_progress(void *context, uint32_t done, uint32_t total) {
  (void)context;
  cleave_output_progress("checking %u of %u", (unsigned)done + 1, (unsigned)total);
}

static cleave_status_t check(verify_t *verify, cleave_error_t *error) {
  cleave_plan_destroy(verify->job.plan);
  verify->job.plan = NULL;
  cleave_verify_report_deinit(&verify->report);
  CLEAVE_TRY(verify->options.rules.count > 0
                 ? cleave_rule_list_partition(&verify->rules, cleave_model_graph(verify->job.model),
                                              &verify->job.plan, error)
                 : cleave_job_partition(&verify->job, error));
  verify->checks.inputs = verify->job.inputs.tensors;
  verify->checks.input_count = verify->job.inputs.count;
  verify->checks.progress = show_progress;
  cleave_status_t status = cleave_plan_verify(verify->job.plan, &verify->checks, &verify->report, error);
  cleave_output_progress_end();
  return status;
}

/* ---- what is kept of a failure ---- */

/* The region as its backend gets it, fusions included; constants in files beside it. */
static cleave_status_t save_region(const verify_t *verify, const cleave_verify_item_t *item, const char *path,
                                   cleave_error_t *error) {
  cleave_region_json_options_t options = {.constants = CLEAVE_REGION_CONSTANTS_FILES, .path = path};
  cleave_text_t text = {0};
  cleave_status_t status = cleave_plan_print_region(verify->job.plan, item->index, &options, &text, error);
  CLEAVE_THEN(status, cleave_file_write(path, text.data, text.length, error));
  cleave_text_deinit(&text);
  return status;
}

enum { LONGEST_NAME = 32 };

typedef struct folder {
  char path[1024];
  size_t length;
} folder_t;

/* The path of a file in it, until the next one is asked for. */
static const char *file_in(folder_t *folder, const char *name) {
  (void)snprintf(folder->path + folder->length, LONGEST_NAME, "/%s", name);
  return folder->path;
}

/* Makes SAVE/<rule>_<number>. */
static cleave_status_t open_folder(verify_t *verify, const char *rule, uint32_t number, folder_t *folder,
                                   cleave_error_t *error) {
  CLEAVE_TRY(cleave_folder_make(verify->save, error));
  size_t room = sizeof folder->path - LONGEST_NAME;
  int length = snprintf(folder->path, room, "%s/%s_%u", verify->save, rule, (unsigned)number);
  if (length < 0 || (size_t)length >= room) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "--save: the path is too long");
  }
  folder->length = (size_t)length;
  (void)json_array_append_new(verify->saved, json_string(folder->path));
  return cleave_folder_make(folder->path, error);
}

/* For --data: region.onnx and region.json, or before.onnx and after.onnx of a rewrite; input_0.pb, ..., and
 * what cpu makes of them, output_0.pb, ... */
static cleave_status_t save_item(verify_t *verify, const cleave_verify_item_t *item, uint32_t number,
                                 cleave_error_t *error) {
  folder_t folder;
  bool is_rewrite = item->kind == CLEAVE_VERIFY_REWRITE;
  CLEAVE_TRY(open_folder(verify, verify->job.plan->rules[item->rule].name, number, &folder, error));
  CLEAVE_TRY(cleave_tensors_save(folder.path, "input", item->inputs, item->input_count, error));
  CLEAVE_TRY(cleave_tensors_save(folder.path, "output", item->outputs, item->output_count, error));
  if (item->graph != NULL) {
    const char *name = is_rewrite ? "before.onnx" : "region.onnx";
    CLEAVE_TRY(cleave_onnx_write(file_in(&folder, name), item->graph, NULL, error));
  }
  if (item->after != NULL) {
    CLEAVE_TRY(cleave_onnx_write(file_in(&folder, "after.onnx"), item->after, NULL, error));
  }
  return item->kind == CLEAVE_VERIFY_REGION
             ? save_region(verify, item, file_in(&folder, "region.json"), error)
             : CLEAVE_OK;
}

static bool is_failure(const cleave_verify_item_t *item) {
  return item->verdict == CLEAVE_VERIFY_MISMATCH || item->verdict == CLEAVE_VERIFY_FAILED;
}

static cleave_status_t save_failures(verify_t *verify, cleave_error_t *error) {
  for (size_t k = 0; k < verify->report.items.count; k++) {
    const cleave_verify_item_t *item = &verify->report.items.items[k];
    if (is_failure(item)) {
      CLEAVE_TRY(save_item(verify, item, (uint32_t)json_array_size(verify->saved), error));
    }
  }
  return CLEAVE_OK;
}

/* ---- quarantine ---- */

static void drop_rule(verify_t *verify, const cleave_verify_item_t *item, const cleave_plan_rule_t *rule) {
  uint32_t n = verify->dropped_count++;
  (void)snprintf(verify->left_out[n].file, sizeof verify->left_out[n].file, "%s", rule->file);
  (void)snprintf(verify->left_out[n].name, sizeof verify->left_out[n].name, "%s", rule->name);
  verify->left_out[n].line = rule->line;
  (void)json_array_append_new(
      verify->dropped, json_pack("{s:s, s:s, s:i, s:s}", "rule", rule->name, "file", rule->file, "line",
                                 (int)rule->line, "reason", cleave_text_get(&item->reason)));
}

/* Leaves out the rules of failing rewrites; if there are none, those of failing fusions; and only if
 * there are none either those of regions: a region fails with what is in it. */
static void drop_rules(verify_t *verify) {
  static const cleave_verify_kind_t ORDER[] = {CLEAVE_VERIFY_REWRITE, CLEAVE_VERIFY_FUSION,
                                               CLEAVE_VERIFY_REGION};
  uint32_t before = verify->dropped_count;
  for (size_t o = 0; o < sizeof ORDER / sizeof ORDER[0] && verify->dropped_count == before; o++) {
    for (size_t k = 0; k < verify->report.items.count; k++) {
      const cleave_verify_item_t *item = &verify->report.items.items[k];
      const cleave_plan_rule_t *rule = &verify->job.plan->rules[item->rule];
      if (is_failure(item) && item->kind == ORDER[o] && verify->dropped_count < MAX_QUARANTINED &&
          is_allowed(verify, NULL, rule, NULL, 0)) {
        drop_rule(verify, item, rule);
      }
    }
  }
}

static cleave_status_t work(verify_t *verify, cleave_error_t *error) {
  CLEAVE_TRY(cleave_job_load(&verify->job, &verify->options, error));
  CLEAVE_TRY(cleave_job_bind(&verify->job, error));
  CLEAVE_TRY(cleave_job_load_rules(&verify->job, &verify->rules, error));
  verify->rules.allow = is_allowed;
  verify->rules.allow_context = verify;
  CLEAVE_TRY(check(verify, error));
  CLEAVE_TRY(save_failures(verify, error));
  while (verify->quarantine && verify->report.mismatches > 0) {
    uint32_t before = verify->dropped_count;
    drop_rules(verify);
    if (verify->dropped_count == before) {
      break;
    }
    CLEAVE_TRY(check(verify, error));
  }
  return CLEAVE_OK;
}

/* ---- printing ---- */

static const char *const VERDICTS[] = {"match", "DIFFERS", "FAILED", "skipped"};

static const char *const KINDS[] = {"fusion", "region", "rewrite"};

static uint32_t node_count_of(const cleave_plan_t *plan, const cleave_verify_item_t *item) {
  switch (item->kind) {
    case CLEAVE_VERIFY_FUSION: return plan->fusions[item->index].node_count;
    case CLEAVE_VERIFY_REGION: return plan->regions[item->index].node_count;
    case CLEAVE_VERIFY_REWRITE: break;
  }
  return cleave_edits_nodes_taken(plan->edits, item->rule);
}

/* The first node, or of a rewrite the value that differs most, for people. */
static const char *place_of(const verify_t *verify, const cleave_verify_item_t *item, char *buffer,
                            size_t size) {
  const cleave_plan_t *plan = verify->job.plan;
  if (item->kind == CLEAVE_VERIFY_REWRITE) {
    return item->index == CLEAVE_INDEX_NONE ? ""
                                            : cleave_value_name(plan->source, (cleave_value_t){item->index});
  }
  const cleave_node_t node = item->kind == CLEAVE_VERIFY_FUSION ? plan->fusions[item->index].nodes[0]
                                                                : plan->regions[item->index].nodes[0];
  return cleave_node_label(plan->graph, node, buffer, size);
}

static void print_items(const verify_t *verify) {
  const cleave_plan_t *plan = verify->job.plan;
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "rule\tof\tnodes\tsame\tplace\tlargest difference\trelative\tverdict\n");
  for (size_t k = 0; k < verify->report.items.count; k++) {
    const cleave_verify_item_t *item = &verify->report.items.items[k];
    char label[128];
    cleave_text_show(&rows, "%s\t%s\t%u\t%u\t%s\t", plan->rules[item->rule].name, KINDS[item->kind],
                     (unsigned)node_count_of(plan, item), (unsigned)item->count,
                     place_of(verify, item, label, sizeof label));
    if (item->verdict == CLEAVE_VERIFY_MATCH || item->verdict == CLEAVE_VERIFY_MISMATCH) {
      cleave_text_show(&rows, "%.3g\t%.1e\t", item->max_absolute, item->relative);
    } else {
      cleave_text_add(&rows, "\t\t");
    }
    cleave_text_show(&rows, "%s\n", VERDICTS[item->verdict]);
  }
  cleave_output_table(&rows, "llrrlrrl");
}

static void print_reasons(const verify_t *verify) {
  const cleave_plan_t *plan = verify->job.plan;
  for (size_t k = 0; k < verify->report.items.count; k++) {
    const cleave_verify_item_t *item = &verify->report.items.items[k];
    const cleave_plan_rule_t *rule = &plan->rules[item->rule];
    char label[128];
    char place[CLEAVE_PLACE_SIZE];
    if (item->verdict == CLEAVE_VERIFY_MISMATCH || item->verdict == CLEAVE_VERIFY_FAILED) {
      cleave_print("  %s: %s '%s' at '%s', %s values: %s\n", cleave_rule_place(rule->file, rule->line, place),
                   cleave_rule_kind_name(rule->kind), rule->name, place_of(verify, item, label, sizeof label),
                   item->round == 0 ? "the model's" : "random", cleave_text_get(&item->reason));
    }
  }
}

static void print_dropped(const verify_t *verify) {
  size_t index = 0;
  json_t *entry = NULL;
  json_array_foreach(verify->dropped, index, entry) {
    cleave_print("  quarantined: %s:%d: '%s' (%s)\n", json_string_value(json_object_get(entry, "file")),
                 (int)json_integer_value(json_object_get(entry, "line")),
                 json_string_value(json_object_get(entry, "rule")),
                 json_string_value(json_object_get(entry, "reason")));
  }
}

static int print_text(const verify_t *verify) {
  const cleave_plan_t *plan = verify->job.plan;
  const cleave_verify_report_t *report = &verify->report;
  uint32_t skipped = 0;
  cleave_report_sizes(&verify->job.inputs.sizes);
  print_items(verify);
  cleave_print("\n");
  cleave_report_mistakes(plan);
  print_reasons(verify);
  print_dropped(verify);
  size_t index = 0;
  json_t *entry = NULL;
  json_array_foreach(verify->saved, index, entry) {
    cleave_print("  saved: %s\n", json_string_value(entry));
  }
  for (size_t k = 0; k < report->items.count; k++) {
    skipped += report->items.items[k].verdict == CLEAVE_VERIFY_SKIPPED ? 1 : 0;
  }
  cleave_print("%zu distinct fusions, regions and rewrites: %zu match, %u do not, %u skipped\n",
               report->items.count, report->items.count - report->mismatches - skipped,
               (unsigned)report->mismatches, (unsigned)skipped);
  return report->mismatches == 0 ? CLEAVE_EXIT_OK : CLEAVE_EXIT_FAILURE;
}

static json_t *item_json(const verify_t *verify, const cleave_verify_item_t *item) {
  const cleave_plan_t *plan = verify->job.plan;
  const cleave_plan_rule_t *rule = &plan->rules[item->rule];
  char label[128];
  return json_pack("{s:s, s:s, s:i, s:s, s:i, s:s, s:s, s:f, s:f, s:s}", "rule", rule->name, "file",
                   rule->file, "line", (int)rule->line, "of", KINDS[item->kind], "same", (int)item->count,
                   "node", place_of(verify, item, label, sizeof label), "verdict", VERDICTS[item->verdict],
                   "max_absolute", item->max_absolute, "relative", item->relative, "reason",
                   cleave_text_get(&item->reason));
}

static int print_json(const verify_t *verify) {
  json_t *items = json_array();
  for (size_t k = 0; k < verify->report.items.count; k++) {
    (void)json_array_append_new(items, item_json(verify, &verify->report.items.items[k]));
  }
  json_t *json = json_pack("{s:s, s:i, s:o, s:O, s:O}", "model", verify->options.model, "mismatches",
                           (int)verify->report.mismatches, "items", items, "quarantined", verify->dropped,
                           "saved", verify->saved);
  (void)json_object_set_new(json, "sizes", cleave_sizes_json(&verify->job.inputs.sizes));
  int status = cleave_output_json(json);
  return status == CLEAVE_EXIT_OK && verify->report.mismatches > 0 ? CLEAVE_EXIT_FAILURE : status;
}

/* Long: one table of options. */
static int run(cleave_arguments_t *arguments) {
  static verify_t verify;
  verify = (verify_t){.save = NULL, .rounds = 2, .rtol = -1.0, .atol = -1.0};
  cleave_job_options_t *job = &verify.options;
  bool each = false;
  const cleave_option_t options[] = {
      CLEAVE_JOB_RULES(job),
      CLEAVE_JOB_SETTINGS(job),
      CLEAVE_JOB_RANGES(job),
      CLEAVE_TEXT(&job->backend, "backend", "NAME",
                  "without rule files: one region over all that this backend supports; with rule files: the "
                  "backend in place of theirs"),
      CLEAVE_INT(&verify.rounds, "rounds", "N",
                 "rounds with random values, after one with the values of the model (default: 2)"),
      CLEAVE_FLAG(&each, "each", "check every fusion and region, not only one of each structure"),
      CLEAVE_FLAG(&verify.quarantine, "quarantine",
                  "leave out rules that fail, and check what the others do to the model"),
      CLEAVE_TEXT(&verify.save, "save", "DIR",
                  "folder for failures, a folder each: region.onnx and region.json, or before.onnx and "
                  "after.onnx of a rewrite, with input_N.pb and the results of cpu, output_N.pb, for 'cleave "
                  "run --data' (default: cleave-verify)"),
      CLEAVE_NUMBER(&verify.rtol, "rtol", "X",
                    "relative tolerance (default: what rounding does to these values)"),
      CLEAVE_NUMBER(
          &verify.atol, "atol", "X",
          "tolerance as a share of an output's largest value (default: what rounding does to these values)"),
      CLEAVE_JOB_INPUTS(job),
      CLEAVE_FLAG(&verify.json, "json", "print the results as JSON"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_session_options_t session;
  verify.dropped = json_array();
  verify.saved = json_array();
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    job->model = arguments->found.items[0];
    verify.save = verify.save == NULL ? "cleave-verify" : verify.save;
    session = cleave_common_session();
    verify.checks =
        (cleave_verify_options_t){.rounds = (uint32_t)(verify.rounds > 1000 ? 1000 : verify.rounds),
                                  .seed = (uint64_t)job->seed,
                                  .threads = (int32_t)(job->threads > 1024 ? 1024 : job->threads),
                                  .session = &session,
                                  .each = each,
                                  .rtol = verify.rtol,
                                  .atol = verify.atol};
    if (!cleave_job_has_rules(job) && job->backend == NULL) {
      status = cleave_arguments_fail("verify", "expected --rules FILE, or --backend NAME");
    } else if (work(&verify, &error) != CLEAVE_OK) {
      status = cleave_output_error(&error);
    } else {
      status = verify.json ? print_json(&verify) : print_text(&verify);
    }
  }
  cleave_verify_report_deinit(&verify.report);
  cleave_rule_list_deinit(&verify.rules);
  cleave_job_deinit(&verify.job);
  json_decref(verify.dropped);
  json_decref(verify.saved);
  return status;
}

CLEAVE_COMMAND_DEFINE(
    verify, 35, "MODEL", run, "check every fusion and region against cpu",
    "Checks what rule files do to a model: every distinct fusion and region runs alone on its backend,\n"
    "and its nodes one by one on cpu, on the model's own values and on random ones.\n"
    "Exit status 1 if one differs; its rule is named, and the files to reproduce it are saved.",
    .makes_sessions = true, .min_operands = 1)
