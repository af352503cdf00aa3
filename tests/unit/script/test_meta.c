// SPDX-License-Identifier: Apache-2.0
/*
 * Definitions and tables are what the code generates: those that the build made, and the tables of
 * rules/README.md between their markers, which CLEAVE_UPDATE=1 in the environment writes anew.
 */
#include "script/meta.h"

#include "base/text.h"
#include "ops/ops.h"
#include "system/file.h"
#include "unit.h"

typedef struct generated {
  cleave_arena_t arena;
  const cleave_meta_text_t *texts;
  uint32_t count;
} generated_t;

static generated_t generate(void) {
  generated_t generated = {0};
  unit_ok(cleave_meta_generate(&generated.arena, &generated.texts, &generated.count, e));
  return generated;
}

static const cleave_meta_text_t *find(const generated_t *generated, const char *name) {
  for (uint32_t k = 0; k < generated->count; k++) {
    if (strcmp(generated->texts[k].name, name) == 0) {
      return &generated->texts[k];
    }
  }
  ck_abort_msg("nothing is generated as '%s'", name);
  return NULL;
}

static bool is_update(void) {
  const char *update = getenv("CLEAVE_UPDATE");
  return update != NULL && strcmp(update, "1") == 0;
}

static char *read_file(const char *path) {
  cleave_file_t *file = NULL;
  if (cleave_file_read(path, 1 << 22, &file, NULL) != CLEAVE_OK) {
    return NULL;
  }
  char *text = cleave_copy_text((const char *)cleave_file_data(file), cleave_file_size(file));
  cleave_file_release(file);
  return text;
}

static char *read_source(const char *name) {
  char path[512];
  (void)snprintf(path, sizeof path, "%s/%s", CLEAVE_SOURCE_DIR, name);
  return read_file(path);
}

static void write_source(const char *name, const char *text, size_t length) {
  char path[512];
  (void)snprintf(path, sizeof path, "%s/%s", CLEAVE_SOURCE_DIR, name);
  unit_ok(cleave_file_write(path, text, length, e));
}

static int line_of(const char *text, size_t offset) {
  int line = 1;
  for (size_t k = 0; k < offset; k++) {
    line += text[k] == '\n' ? 1 : 0;
  }
  return line;
}

static void expect_same(const char *name, const char *found, const char *expected) {
  size_t k = 0;
  while (found[k] != '\0' && found[k] == expected[k]) {
    k++;
  }
  ck_assert_msg(found[k] == expected[k],
                "%s differs from line %d on; CLEAVE_UPDATE=1 tests/unit_tests test_meta in the build folder "
                "writes it anew",
                name, line_of(found, k));
}

UNIT_TEST(the_build_has_the_definitions_and_the_table_of_operators) {
  static const char *const FILES[] = {"meta/graph.lua", "meta/operators.lua", "meta/words.lua",
                                      "OPERATORS.md"};
  generated_t generated = generate();
  for (size_t k = 0; k < sizeof FILES / sizeof FILES[0]; k++) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/reference/.cleave/%s", CLEAVE_BINARY_DIR, FILES[k]);
    char *found = read_file(path);
    ck_assert_msg(found != NULL, "%s is not there", path);
    expect_same(path, found, find(&generated, FILES[k])->text);
    cleave_free(found);
  }
  cleave_arena_deinit(&generated.arena);
}

/* A line begins with the texts; whole names, since many begin with another. */
static void expect_line(const char *text, const char *before, const char *name, const char *after) {
  char line[128];
  (void)snprintf(line, sizeof line, "\n%s%s%s", before, name, after);
  ck_assert_msg(strstr(text, line) != NULL, "no line begins with '%s'", line + 1);
}

/* Every operator of the list has its wrapper and its row. */
UNIT_TEST(all_operators_are_in_the_definitions_and_in_the_table) {
  generated_t generated = generate();
  const char *definitions = find(&generated, "meta/operators.lua")->text;
  const char *table = find(&generated, "OPERATORS.md")->text;
  for (uint32_t k = 0; k < CLEAVE_OP_COUNT; k++) {
    const cleave_op_t *op = cleave_op_get((cleave_op_id_t)k);
    char name[96];
    (void)snprintf(name, sizeof name, "%s%s%s", op->domain, op->domain[0] == '\0' ? "" : ".", op->name);
    expect_line(definitions, "---@field ", op->name, " fun(");
    expect_line(table, "| ", name, " | ");
  }
  cleave_arena_deinit(&generated.arena);
}

/* The README with each table between "<!-- table: name -->" and "<!-- end -->" as it is generated. */
static void put_tables(const generated_t *generated, const char *readme, cleave_text_t *out, int *out_count) {
  static const char END[] = "<!-- end -->";
  *out_count = 0;
  for (;;) {
    const char *begin = strstr(readme, "<!-- table: ");
    const char *close = begin == NULL ? NULL : strstr(begin, " -->\n");
    if (close == NULL) {
      break;
    }
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)(close - begin - 5), begin + 5);
    const char *end = strstr(close, END);
    ck_assert_msg(end != NULL, "no end of '%s'", name);
    close += 5;
    cleave_text_append(out, readme, (size_t)(close - readme));
    cleave_text_add(out, find(generated, name)->text);
    readme = end;
    (*out_count)++;
  }
  cleave_text_add(out, readme);
}

UNIT_TEST(the_tables_of_the_readme_are_up_to_date) {
  static const char NAME[] = "rules/README.md";
  generated_t generated = generate();
  char *readme = read_source(NAME);
  ck_assert_ptr_nonnull(readme);
  cleave_text_t expected = {0};
  int count = 0;
  put_tables(&generated, readme, &expected, &count);
  ck_assert_int_eq(count, 3);
  if (is_update()) {
    write_source(NAME, expected.data, expected.length);
    cleave_free(readme);
    readme = read_source(NAME);
  }
  expect_same(NAME, readme, cleave_text_get(&expected));
  cleave_text_deinit(&expected);
  cleave_free(readme);
  cleave_arena_deinit(&generated.arena);
}

/* The settings of this project know all words. */
UNIT_TEST(the_words_are_known_to_luacheck_and_to_editors) {
  generated_t generated = generate();
  const char *list = strstr(find(&generated, ".luacheckrc")->text, "read_globals");
  char *luacheckrc = read_source(".luacheckrc");
  char *luarc = read_source(".luarc.json");
  ck_assert(list != NULL && luacheckrc != NULL && luarc != NULL);
  int count = 0;
  const char *end = strstr(list, "-- of Lua");
  ck_assert_ptr_nonnull(end);
  for (const char *open = strchr(list, '"'); open < end;) {
    const char *close = strchr(open + 1, '"');
    char word[64];
    (void)snprintf(word, sizeof word, "%.*s", (int)(close - open + 1), open);
    ck_assert_msg(strstr(luacheckrc, word) != NULL, ".luacheckrc does not know %s", word);
    count++;
    open = strchr(close + 1, '"');
  }
  ck_assert_int_gt(count, 20);
  ck_assert_msg(strstr(luarc, "reference/.cleave/meta") != NULL,
                ".luarc.json does not name the definitions of the build");
  cleave_free(luacheckrc);
  cleave_free(luarc);
  cleave_arena_deinit(&generated.arena);
}

UNIT_TEST(is_the_same_each_time) {
  generated_t a = generate();
  generated_t b = generate();
  ck_assert_uint_eq(a.count, b.count);
  for (uint32_t k = 0; k < a.count; k++) {
    ck_assert_str_eq(a.texts[k].name, b.texts[k].name);
    ck_assert_str_eq(a.texts[k].text, b.texts[k].text);
  }
  cleave_arena_deinit(&a.arena);
  cleave_arena_deinit(&b.arena);
}

UNIT_SUITE("meta")
