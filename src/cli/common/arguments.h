// SPDX-License-Identifier: Apache-2.0
/*
 * Command lines: long options (`--opt value`, `--opt=value`), single letters for a few, positional arguments
 * in between, `--` before what would look like an option. The table of options is also what --help prints.
 */
#ifndef CLEAVE_CLI_COMMON_ARGUMENTS_H
#define CLEAVE_CLI_COMMON_ARGUMENTS_H

#include <stdint.h>

#include "base/arena.h"
#include "cli/common/command.h"

typedef struct cleave_text_list {
  const char **items;
  size_t count;
} cleave_text_list_t;

typedef enum cleave_option_kind {
  CLEAVE_OPTION_FLAG,   /* bool * */
  CLEAVE_OPTION_TEXT,   /* const char ** */
  CLEAVE_OPTION_LIST,   /* cleave_text_list_t *: may be given many times */
  CLEAVE_OPTION_INT,    /* int64_t *, at least 0 */
  CLEAVE_OPTION_NUMBER, /* double *, at least 0 */
} cleave_option_kind_t;

typedef struct cleave_option {
  const char *name; /* "rules" */
  char letter;      /* 'o', or 0 */
  cleave_option_kind_t kind;
  const char *value; /* what --help calls the value: "FILE"; NULL for flags */
  const char *help;  /* explains it, defaults included */
  void *target;
} cleave_option_t;

/* The usual ones, in tables of options. */
#define CLEAVE_FLAG(target, name, help) \
  { name, 0, CLEAVE_OPTION_FLAG, NULL, help, target }
#define CLEAVE_TEXT(target, name, value, help) \
  { name, 0, CLEAVE_OPTION_TEXT, value, help, target }
#define CLEAVE_LIST(target, name, value, help) \
  { name, 0, CLEAVE_OPTION_LIST, value, help, target }
#define CLEAVE_INT(target, name, value, help) \
  { name, 0, CLEAVE_OPTION_INT, value, help, target }
#define CLEAVE_NUMBER(target, name, value, help) \
  { name, 0, CLEAVE_OPTION_NUMBER, value, help, target }

typedef struct cleave_arguments {
  const cleave_command_t *command;
  int count; /* of `texts`: what follows the command's name */
  char **texts;
  const cleave_option_t *options; /* set by parsing */
  size_t option_count;
  cleave_text_list_t found; /* the operands, set by parsing */
  cleave_arena_t memory;    /* of lists */
} cleave_arguments_t;

/* A table of options, and its length. */
#define CLEAVE_OPTIONS(table) (table), sizeof(table) / sizeof((table)[0])

/* Fills in the targets. True: go on. False: --help was printed, or an error was; exit with *out_exit. Lists
 * live as long as the arguments. */
bool cleave_arguments_parse(cleave_arguments_t *arguments, const cleave_option_t *options,
                            size_t option_count, int *out_exit);
void cleave_arguments_free(cleave_arguments_t *arguments);

/* "cleave run: <line>; see 'cleave run --help'" on standard error; returns the exit status for usage. */
int cleave_arguments_fail(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* CLEAVE_CLI_COMMON_ARGUMENTS_H */
