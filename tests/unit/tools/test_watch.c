// SPDX-License-Identifier: Apache-2.0
// Rule files that are edited: every way in which editors save, files that vanish, broken rules, bursts, and
// what a reload says. Files are in a folder of their own per test.

#include <dirent.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/model/model.h"
#include "runtime/session/session.h"
#include "session_case.h"
#include "system/clock.h"
#include "system/file.h"
#include "tools/watch/watch_files.h"
#include "unit.h"

enum { LONG_MS = 8000, SILENCE_MS = 400 };

static char folder[256];

static void remove_tree(const char *path) {
  DIR *entries = opendir(path);
  for (struct dirent *entry = entries == NULL ? NULL : readdir(entries); entry != NULL;
       entry = readdir(entries)) {
    char inner[600];
    struct stat found;
    (void)snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
      continue;
    }
    if (lstat(inner, &found) == 0 && S_ISDIR(found.st_mode)) {
      remove_tree(inner);
    } else {
      (void)unlink(inner);
    }
  }
  if (entries != NULL) {
    (void)closedir(entries);
  }
  (void)rmdir(path);
}

static void remove_folder(void) {
  remove_tree(folder);
}

static void make_folder(void) {
  (void)snprintf(folder, sizeof folder, "%s/watch_XXXXXX", CLEAVE_BINARY_DIR);
  ck_assert_ptr_nonnull(mkdtemp(folder));
  (void)atexit(remove_folder);
}

static const char *path_of(const char *name) {
  static char paths[8][400];
  static int next;
  char *path = paths[next++ % 8];
  (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

/* In place, as `cat >file` does. */
static void write_file(const char *name, const char *text) {
  FILE *file = fopen(path_of(name), "w");
  ck_assert_ptr_nonnull(file);
  (void)fputs(text, file);
  (void)fclose(file);
}

/* Beside the file and renamed, as most editors do. */
static void replace_file(const char *name, const char *text) {
  unit_ok(cleave_file_write(path_of(name), text, strlen(text), e));
}

// ---- files ----

static cleave_watch_files_t *watch_file(const char *name) {
  cleave_watch_files_t *files = NULL;
  unit_ok(cleave_watch_files_create(20, &files, e));
  unit_ok(cleave_watch_files_add(files, path_of(name), e));
  return files;
}

/* The file that changed within `ms`, or NULL. */
static const char *next_change(cleave_watch_files_t *files, int ms) {
  uint64_t start = cleave_clock_now();
  for (;;) {
    const char *path = NULL;
    uint64_t saved = 0;
    unit_ok(cleave_watch_files_poll(files, &path, &saved, e));
    int left = ms - (int)cleave_clock_ms(start, cleave_clock_now());
    if (path != NULL) {
      ck_assert_uint_le(saved, cleave_clock_now());
      return cleave_path_name(path);
    }
    if (left <= 0) {
      return NULL;
    }
    struct pollfd wait = {.fd = cleave_watch_files_descriptor(files), .events = POLLIN};
    (void)poll(&wait, 1, left);
  }
}

UNIT_TEST(every_way_of_saving_is_seen) {
  make_folder();
  write_file("r.lua", "1");
  cleave_watch_files_t *files = watch_file("r.lua");
  ck_assert_ptr_null(next_change(files, SILENCE_MS));
  write_file("r.lua", "2");
  ck_assert_str_eq(next_change(files, LONG_MS), "r.lua");
  replace_file("r.lua", "3");
  ck_assert_str_eq(next_change(files, LONG_MS), "r.lua");
  write_file("r.lua~", "4");
  ck_assert_int_eq(rename(path_of("r.lua"), path_of("r.bak")), 0);
  ck_assert_int_eq(rename(path_of("r.lua~"), path_of("r.lua")), 0);
  ck_assert_str_eq(next_change(files, LONG_MS), "r.lua");
  FILE *file = fopen(path_of("r.lua"), "a");
  ck_assert_ptr_nonnull(file);
  (void)fputs("5", file);
  (void)fclose(file);
  ck_assert_str_eq(next_change(files, LONG_MS), "r.lua");
  ck_assert_ptr_null(next_change(files, SILENCE_MS));
  cleave_watch_files_destroy(files);
}

UNIT_TEST(other_files_of_the_folder_are_nothing) {
  make_folder();
  write_file("r.lua", "1");
  cleave_watch_files_t *files = watch_file("r.lua");
  write_file("other.lua", "2");
  replace_file("another.lua", "3");
  ck_assert_ptr_null(next_change(files, SILENCE_MS));
  cleave_watch_files_destroy(files);
}

UNIT_TEST(a_burst_is_one_change) {
  make_folder();
  write_file("r.lua", "1");
  cleave_watch_files_t *files = watch_file("r.lua");
  for (int k = 0; k < 50; k++) {
    write_file("r.lua", "2");
    (void)usleep(1000);
  }
  ck_assert_str_eq(next_change(files, LONG_MS), "r.lua");
  ck_assert_ptr_null(next_change(files, SILENCE_MS));
  cleave_watch_files_destroy(files);
}

UNIT_TEST(what_never_stops_is_told_all_the_same) {
  make_folder();
  write_file("r.lua", "1");
  cleave_watch_files_t *files = watch_file("r.lua");
  uint64_t start = cleave_clock_now();
  const char *path = NULL;
  while (path == NULL && cleave_clock_ms(start, cleave_clock_now()) < LONG_MS) {
    write_file("r.lua", "2");
    path = next_change(files, 5);
  }
  ck_assert_ptr_nonnull(path);
  cleave_watch_files_destroy(files);
}

UNIT_TEST(a_file_that_vanishes_and_comes_back_is_one_change) {
  make_folder();
  write_file("r.lua", "1");
  cleave_watch_files_t *files = watch_file("r.lua");
  ck_assert_int_eq(unlink(path_of("r.lua")), 0);
  ck_assert_ptr_null(next_change(files, 60)); /* some time is given */
  write_file("r.lua", "2");
  ck_assert_str_eq(next_change(files, LONG_MS), "r.lua");
  ck_assert_ptr_null(next_change(files, SILENCE_MS));
  cleave_watch_files_destroy(files);
}

UNIT_TEST(a_file_that_is_gone_is_told_once_and_again_when_it_is_back) {
  make_folder();
  write_file("r.lua", "1");
  cleave_watch_files_t *files = watch_file("r.lua");
  ck_assert_int_eq(unlink(path_of("r.lua")), 0);
  ck_assert_str_eq(next_change(files, LONG_MS), "r.lua");
  ck_assert_ptr_null(next_change(files, SILENCE_MS));
  write_file("r.lua", "1");
  ck_assert_str_eq(next_change(files, LONG_MS), "r.lua");
  cleave_watch_files_destroy(files);
}

UNIT_TEST(a_folder_that_is_replaced_is_watched_again) {
  make_folder();
  ck_assert_int_eq(mkdir(path_of("sub"), 0777), 0);
  write_file("sub/r.lua", "1");
  cleave_watch_files_t *files = watch_file("sub/r.lua");
  ck_assert_int_eq(rename(path_of("sub"), path_of("old")), 0);
  ck_assert_int_eq(mkdir(path_of("sub"), 0777), 0);
  write_file("sub/r.lua", "2");
  ck_assert_str_eq(next_change(files, LONG_MS), "r.lua");
  (void)next_change(files, SILENCE_MS);
  write_file("sub/r.lua", "3");
  ck_assert_str_eq(next_change(files, LONG_MS), "r.lua");
  cleave_watch_files_destroy(files);
}

UNIT_TEST(a_file_that_is_not_there_yet_can_be_watched) {
  make_folder();
  cleave_watch_files_t *files = watch_file("deep/er/r.lua");
  ck_assert_ptr_null(next_change(files, SILENCE_MS));
  ck_assert_int_eq(mkdir(path_of("deep"), 0777), 0);
  (void)next_change(files, 100);
  ck_assert_int_eq(mkdir(path_of("deep/er"), 0777), 0);
  (void)next_change(files, 100);
  write_file("deep/er/r.lua", "1");
  ck_assert_str_eq(next_change(files, LONG_MS), "r.lua");
  cleave_watch_files_destroy(files);
}

UNIT_TEST(what_a_symbolic_link_leads_to_is_watched) {
  make_folder();
  ck_assert_int_eq(mkdir(path_of("real"), 0777), 0);
  write_file("real/target.lua", "1");
  ck_assert_int_eq(symlink("real/target.lua", path_of("r.lua")), 0);
  cleave_watch_files_t *files = watch_file("r.lua");
  replace_file("real/target.lua", "2");
  ck_assert_str_eq(next_change(files, LONG_MS), "r.lua");
  cleave_watch_files_destroy(files);
}

// ---- rules ----

#define HEAD "return ruleset { name = 'edited', backend = 'cpu',\n"
#define FUSE "fuse 'f' { doc = 'd', pattern = op { 'MatMul' } >> op { 'Add' } },\n"
#define ISLAND "region 'island' { doc = 'd', ops = { 'MatMul', 'Add', 'Tanh' } },\n"
#define SMALL "region 'island' { doc = 'd', ops = { 'MatMul', 'Add' } },\n"

static const int64_t square[2] = {4, 4};
static float numbers[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/* y = Tanh(x * w + w) */
static cleave_model_t *make_model(void) {
  session_case_t c = session_case_create();
  cleave_model_t *model = NULL;
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, square);
  cleave_value_t w = session_case_floats(&c, "w", 2, square, numbers);
  cleave_value_t product = session_case_node(&c, "MatMul", "product", x, w, CLEAVE_VALUE_NONE);
  cleave_value_t sum = session_case_node(&c, "Add", "sum", product, w, CLEAVE_VALUE_NONE);
  session_case_output(&c, session_case_node(&c, "Tanh", "y", sum, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE));
  unit_ok(cleave_model_create_take(c.graph, &model, e));
  return model;
}

typedef struct watch_case {
  cleave_model_t *model;
  cleave_rules_watch_t *watch;
} watch_case_t;

static watch_case_t watch_rules(const char *text, int32_t measure_ms) {
  static cleave_tensor_view_t input = {
      .size = sizeof input, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = square, .data = numbers};
  static const cleave_tensor_view_t *const inputs[1] = {&input};
  watch_case_t c = {.model = make_model()};
  make_folder();
  write_file("r.lua", text);
  cleave_rule_source_t source = {.path = path_of("r.lua")};
  cleave_partition_request_t request = {.size = sizeof request, .sources = &source, .source_count = 1};
  cleave_rules_watch_options_t options = {
      .size = sizeof options, .measure_ms = measure_ms, .inputs = inputs, .input_count = 1};
  unit_ok(cleave_rules_watch_create(c.model, &request, &options, &c.watch, e));
  return c;
}

static void end_case(watch_case_t *c) {
  cleave_rules_watch_destroy(c->watch);
  cleave_model_release(c->model);
}

static const cleave_reload_t *next_reload(const watch_case_t *c) {
  const cleave_reload_t *reload = NULL;
  unit_ok(cleave_rules_watch_poll(c->watch, LONG_MS, &reload, e));
  ck_assert_ptr_nonnull(reload);
  return reload;
}

UNIT_TEST(a_saved_rule_file_makes_a_new_plan_and_compares) {
  watch_case_t c = watch_rules(HEAD FUSE ISLAND "}", 50);
  const cleave_reload_t *reload = NULL;
  unit_ok(cleave_rules_watch_poll(c.watch, 0, &reload, e));
  ck_assert_ptr_null(reload);
  const cleave_plan_t *before = cleave_rules_watch_plan(c.watch);
  ck_assert_uint_eq(before->fusion_count, 1);
  replace_file("r.lua", HEAD ISLAND "}");
  reload = next_reload(&c);
  ck_assert_msg(reload->status == CLEAVE_OK, "%s", reload->message);
  ck_assert_str_eq(cleave_path_name(reload->path), "r.lua");
  ck_assert(!reload->same);
  ck_assert(reload->compared);
  ck_assert_double_eq(reload->largest_difference, 0.0);
  ck_assert_str_eq(reload->largest_output, "y");
  ck_assert_uint_ge(reload->runs, 1);
  ck_assert_double_gt(reload->before_ms, 0.0);
  ck_assert_double_gt(reload->after_ms, 0.0);
  ck_assert_uint_eq(reload->programs_compiled, 1);
  ck_assert_double_ge(reload->total_ms, 20.0);
  ck_assert(reload->has_change == (reload->runs >= 6));
  ck_assert_ptr_nonnull(
      strstr(reload->changes, "  f     fuse on cpu            1      -               0      0\n"));
  ck_assert_ptr_nonnull(strstr(reload->changes_json, "\"same\":false"));
  ck_assert_ptr_ne(cleave_rules_watch_plan(c.watch), before);
  ck_assert_uint_eq(cleave_rules_watch_plan(c.watch)->fusion_count, 0);
  ck_assert_uint_eq(before->fusion_count, 1); /* stays until the next reload */
  unit_ok(cleave_session_run(cleave_rules_watch_session(c.watch), e));
  end_case(&c);
}

UNIT_TEST(saving_the_same_again_compiles_nothing) {
  watch_case_t c = watch_rules(HEAD FUSE ISLAND "}", 30);
  replace_file("r.lua", "-- a comment\n" HEAD FUSE ISLAND "}");
  const cleave_reload_t *reload = next_reload(&c);
  ck_assert(reload->same);
  ck_assert_uint_eq(reload->programs_compiled, 0);
  ck_assert_uint_eq(reload->programs_reused, 1);
  ck_assert_str_eq(reload->changes, "the plans are the same: 1 region, 1 fusion\n");
  ck_assert_uint_ge(reload->runs, 1);
  unit_ok(cleave_rules_watch_measure(c.watch, 10, &reload, e));
  ck_assert_uint_ge(reload->runs, 10);
  ck_assert(!reload->has_change); /* whatever the times are */
  ck_assert_double_eq(reload->change, 0.0);
  end_case(&c);
}

UNIT_TEST(more_pairs_than_a_reload_has_time_for_tell_the_change) {
  watch_case_t c = watch_rules(HEAD FUSE ISLAND "}", 1);
  const cleave_reload_t *reload = NULL;
  unit_fails_with(cleave_rules_watch_measure(c.watch, 1, &reload, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "no reload has measured plans");
  replace_file("r.lua", HEAD SMALL "}");
  reload = next_reload(&c);
  ck_assert_uint_eq(reload->runs, 1);
  ck_assert(!reload->has_change);
  unit_ok(cleave_rules_watch_measure(c.watch, 12, &reload, e));
  ck_assert_uint_ge(reload->runs, 12);
  ck_assert(reload->has_change);
  ck_assert_double_le(reload->change_low, reload->change);
  ck_assert_double_le(reload->change, reload->change_high);
  ck_assert_double_gt(reload->change, -1.0);
  end_case(&c);
}

UNIT_TEST(a_broken_file_changes_nothing_but_the_report) {
  watch_case_t c = watch_rules(HEAD FUSE ISLAND "}", 30);
  const cleave_plan_t *plan = cleave_rules_watch_plan(c.watch);
  cleave_session_t *session = cleave_rules_watch_session(c.watch);
  replace_file("r.lua", HEAD "region 'island' { ops = { 'Tanhh' } } }");
  const cleave_reload_t *reload = next_reload(&c);
  ck_assert_int_eq(reload->status, CLEAVE_ERROR_RULE);
  ck_assert_ptr_nonnull(strstr(reload->message, "r.lua:2: "));
  ck_assert_ptr_nonnull(strstr(reload->message, "(did you mean 'Tanh'?)"));
  ck_assert_str_eq(reload->changes, "");
  ck_assert_ptr_eq(cleave_rules_watch_plan(c.watch), plan);
  ck_assert_ptr_eq(cleave_rules_watch_session(c.watch), session);
  unit_ok(cleave_session_run(session, e));
  write_file("r.lua", "this is no Lua");
  ck_assert_int_eq(next_reload(&c)->status, CLEAVE_ERROR_RULE);
  write_file("r.lua", HEAD SMALL "}");
  ck_assert_int_eq(next_reload(&c)->status, CLEAVE_OK);
  end_case(&c);
}

UNIT_TEST(a_file_that_is_gone_is_an_error_until_it_is_back) {
  watch_case_t c = watch_rules(HEAD FUSE ISLAND "}", 30);
  ck_assert_int_eq(unlink(path_of("r.lua")), 0);
  const cleave_reload_t *reload = next_reload(&c);
  ck_assert_int_eq(reload->status, CLEAVE_ERROR_IO);
  ck_assert_ptr_nonnull(strstr(reload->message, "r.lua: the file was removed"));
  write_file("r.lua", HEAD SMALL "}");
  ck_assert_int_eq(next_reload(&c)->status, CLEAVE_OK);
  end_case(&c);
}

UNIT_TEST(files_that_are_included_are_watched_also_broken_ones) {
  watch_case_t c = watch_rules(HEAD FUSE ISLAND "}", 30);
  write_file("part.lua", "return { 'Tanhh' }");
  replace_file("r.lua", "local ops = include 'part.lua'\n" HEAD "region 'island' { ops = ops } }");
  ck_assert_int_eq(next_reload(&c)->status, CLEAVE_ERROR_RULE);
  replace_file("part.lua", "return { 'Tanh' }");
  const cleave_reload_t *reload = next_reload(&c);
  ck_assert_msg(reload->status == CLEAVE_OK, "%s", reload->message);
  ck_assert_str_eq(cleave_path_name(reload->path), "part.lua");
  ck_assert_uint_eq(cleave_rules_watch_plan(c.watch)->regions[0].node_count, 1);
  end_case(&c);
}

UNIT_TEST(without_measuring_the_session_before_is_not_run) {
  watch_case_t c = watch_rules(HEAD FUSE ISLAND "}", -1);
  cleave_tensor_view_t output;
  replace_file("r.lua", HEAD SMALL "}");
  const cleave_reload_t *reload = next_reload(&c);
  ck_assert_int_eq(reload->status, CLEAVE_OK);
  ck_assert(!reload->compared);
  ck_assert_uint_eq(reload->runs, 0);
  unit_fails_with(cleave_session_output(cleave_rules_watch_session(c.watch), 0, &output, e),
                  CLEAVE_ERROR_INVALID_ARGUMENT, "no run has succeeded yet");
  end_case(&c);
}

UNIT_TEST(many_reloads_keep_two_sessions_at_most) {
  watch_case_t c = watch_rules(HEAD FUSE ISLAND "}", 10);
  for (int k = 0; k < 10; k++) {
    replace_file("r.lua", k % 2 == 0 ? HEAD SMALL "}" : HEAD FUSE ISLAND "}");
    const cleave_reload_t *reload = next_reload(&c);
    ck_assert_msg(reload->status == CLEAVE_OK, "%s", reload->message);
    ck_assert_double_eq(reload->largest_difference, 0.0);
  }
  end_case(&c);
}

UNIT_TEST(what_cannot_be_watched_is_refused) {
  cleave_model_t *model = make_model();
  cleave_rules_watch_t *watch = NULL;
  cleave_rule_source_t source = {.path = "nowhere.lua"};
  cleave_partition_request_t none = {.size = sizeof none};
  cleave_partition_request_t request = {.size = sizeof request, .sources = &source, .source_count = 1};
  unit_fails(cleave_rules_watch_create(model, &none, NULL, &watch, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "there is no rule file to watch");
  unit_fails(cleave_rules_watch_create(model, &request, NULL, &watch, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "nowhere.lua: there is no such file to watch");
  make_folder();
  write_file("r.lua", HEAD ISLAND "}");
  source.path = path_of("r.lua");
  unit_fails(cleave_rules_watch_create(model, &request, NULL, &watch, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "the rules give the model 1 input, there is data for 0");
  ck_assert_ptr_null(watch);
  cleave_model_release(model);
}

UNIT_SUITE("watch")
