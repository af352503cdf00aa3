// SPDX-License-Identifier: Apache-2.0
// cleave init: a folder to write rules in: a first rule with its tests, settings of editors and of luacheck,
// and the definitions that editors complete from, of exactly this program.
#include <string.h>
#include <sys/stat.h>

#include "cli/common/arguments.h"
#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/output.h"
#include "script/meta.h"
#include "system/file.h"

/* %s: the backend. */
static const char FIRST_RULE[] =
    "-- A first rule: a convolution and what follows it become one kernel.\n"
    "--\n"
    "--   cleave check first.lua                      runs the tests below\n"
    "--   cleave run MODEL.onnx --rules first.lua     partitions a model, runs it, measures\n"
    "--   cleave why MODEL.onnx --rules first.lua     what it matched, and what it nearly matched\n"
    "\n"
    "local conv = op { \"Conv\", as = \"conv\", inputs = { w = constant \"w\" } }\n"
    "local act = op { { \"Relu\", \"LeakyRelu\", \"Sigmoid\" }, as = \"act\" }\n"
    "\n"
    "return ruleset {\n"
    "  name = \"first\",\n"
    "  backend = \"%s\",\n"
    "  options = {\n"
    "    largest = option.integer(7, \"largest kernel that is fused\", { min = 1 }),\n"
    "  },\n"
    "\n"
    "  fuse \"conv_act\" {\n"
    "    doc = \"A convolution with batch norm and activation.\",\n"
    "    pattern = conv >> maybe \"BatchNormalization\" >> maybe(act),\n"
    "    where = function(m, options)\n"
    "      return m.w.shape[3] <= options.largest, \"the kernel is too large\"\n"
    "    end,\n"
    "  },\n"
    "\n"
    "  test \"fuses a convolution with what follows it\" {\n"
    "    graph = function(g, x)\n"
    "      return g.Relu(g.BatchNormalization(g.Conv(x)))\n"
    "    end,\n"
    "    expect = { conv_act = 1, [\"conv_act.act\"] = 1 },\n"
    "    equal = true,\n"
    "  },\n"
    "\n"
    "  test \"leaves large kernels alone\" {\n"
    "    graph = function(g, x)\n"
    "      return g.Relu(g.Conv(x, g.weight { 4, 3, 9, 9 }))\n"
    "    end,\n"
    "    inputs = { x = { 1, 3, 16, 16 } },\n"
    "    expect_not = { \"conv_act\" },\n"
    "    refused = { conv_act = \"too large\" },\n"
    "  },\n"
    "}\n";

enum { MAX_FILES = 16 };

typedef struct planned_file {
  char *path;
  const char *text;
  size_t length;
  bool is_generated; /* written anew whether or not it is there */
} planned_file_t;

typedef struct plan {
  const char *folder;
  planned_file_t files[MAX_FILES];
  size_t count;
  char first_rule[sizeof FIRST_RULE + 64];
} plan_t;

static cleave_status_t join(const char *folder, const char *name, char **out_path, cleave_error_t *error) {
  cleave_text_t path = {0};
  cleave_text_format(&path, "%s/%s", folder, name);
  *out_path = path.data;
  return cleave_text_check(&path, error);
}

static cleave_status_t add_file(plan_t *plan, const char *name, const char *text, bool is_generated,
                                cleave_error_t *error) {
  if (plan->count == MAX_FILES) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "more than %d files", (int)MAX_FILES);
  }
  planned_file_t *file = &plan->files[plan->count];
  CLEAVE_TRY(join(plan->folder, name, &file->path, error));
  file->text = text;
  file->length = strlen(text);
  file->is_generated = is_generated;
  plan->count++;
  return CLEAVE_OK;
}

static cleave_status_t plan_files(plan_t *plan, const cleave_meta_text_t *texts, uint32_t count,
                                  cleave_error_t *error) {
  (void)snprintf(plan->first_rule, sizeof plan->first_rule, FIRST_RULE,
                 cleave_common_has_backend("onednn") ? "onednn" : "cpu");
  CLEAVE_TRY(add_file(plan, "first.lua", plan->first_rule, false, error));
  for (uint32_t k = 0; k < count; k++) {
    if (texts[k].name[0] == '.') { /* settings of tools, which people may have changed */
      CLEAVE_TRY(add_file(plan, texts[k].name, texts[k].text, false, error));
    } else if (strchr(texts[k].name, ':') == NULL) { /* a file, and no table of rules/README.md */
      char name[64];
      (void)snprintf(name, sizeof name, ".cleave/%s", texts[k].name);
      CLEAVE_TRY(add_file(plan, name, texts[k].text, true, error));
    }
  }
  return CLEAVE_OK;
}

/* Nothing is written if something would be lost. */
static cleave_status_t check_files(const plan_t *plan, cleave_error_t *error) {
  for (size_t k = 0; k < plan->count; k++) {
    struct stat info;
    if (!plan->files[k].is_generated && lstat(plan->files[k].path, &info) == 0) {
      return cleave_error_set(error, CLEAVE_ERROR_IO, "%s: exists already; --force overwrites it",
                              plan->files[k].path);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t write_files(const plan_t *plan, cleave_error_t *error) {
  static const char *const FOLDERS[] = {"", ".cleave", ".cleave/meta"};
  for (size_t k = 0; k < sizeof FOLDERS / sizeof FOLDERS[0]; k++) {
    char *path = NULL;
    cleave_status_t status = join(plan->folder, FOLDERS[k], &path, error);
    CLEAVE_THEN(status, cleave_folder_make(path, error));
    cleave_free(path);
    CLEAVE_TRY(status);
  }
  for (size_t k = 0; k < plan->count; k++) {
    CLEAVE_TRY(cleave_file_write(plan->files[k].path, plan->files[k].text, plan->files[k].length, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t work(plan_t *plan, cleave_arena_t *arena, bool force, cleave_error_t *error) {
  const cleave_meta_text_t *texts = NULL;
  uint32_t count = 0;
  CLEAVE_TRY(cleave_meta_generate(arena, &texts, &count, error));
  CLEAVE_TRY(plan_files(plan, texts, count, error));
  if (!force) {
    CLEAVE_TRY(check_files(plan, error));
  }
  return write_files(plan, error);
}

static void print_files(const plan_t *plan) {
  for (size_t k = 0; k < plan->count; k++) {
    cleave_print("  %s\n", plan->files[k].path);
  }
  cleave_print("\nnext: cleave check %s\n", plan->files[0].path);
}

static int run(cleave_arguments_t *arguments) {
  bool force = false;
  const cleave_option_t options[] = {
      CLEAVE_FLAG(&force, "force", "overwrite files that exist"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_arena_t arena = {0};
  plan_t plan = {.count = 0};
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    plan.folder = arguments->found.items[0];
    if (work(&plan, &arena, force, &error) != CLEAVE_OK) {
      status = cleave_output_error(&error);
    } else {
      print_files(&plan);
    }
  }
  for (size_t k = 0; k < plan.count; k++) {
    cleave_free(plan.files[k].path);
  }
  cleave_arena_deinit(&arena);
  return status;
}

CLEAVE_COMMAND_DEFINE(
    init, 27, "DIR", run, "make a folder to write rules in",
    "Makes a folder to write rules in: a first rule with its tests (first.lua), settings of editors\n"
    "with a Lua language server (.luarc.json) and of luacheck (.luacheckrc), and definitions of every\n"
    "word, field and operator for completion (.cleave/meta), and a table of all operators\n"
    "(.cleave/OPERATORS.md); what is in .cleave is written anew each time.",
    .min_operands = 1)
