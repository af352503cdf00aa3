// SPDX-License-Identifier: Apache-2.0
/*
 * Command lines: long options (`--opt value`, `--opt=value`), single letters for a few, positional arguments
 * in between, `--` before what would look like an option. The table of options is also what --help prints.
 */
#ifndef CLEAVE_CLI_COMMON_ARGUMENTS_H
#define CLEAVE_CLI_COMMON_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

typedef struct cleave_arguments {
  const char *command;
  const char *operands; /* for the usage line: "MODEL" */
  const char *about;    /* what the command does, in lines of at most 100 characters */
  const cleave_option_t *options;
  size_t option_count;
  size_t min_operands;
  size_t max_operands;      /* 0: as many as min_operands */
  bool makes_sessions;      /* it also has the options of sessions (cli/common/common.h) */
  cleave_text_list_t found; /* the operands, set by parsing */
} cleave_arguments_t;

/* The table of options in a cleave_arguments_t, with its length. */
#define CLEAVE_OPTIONS(table) .options = (table), .option_count = sizeof(table) / sizeof((table)[0])

/* Fills in the targets. True: go on. False: --help was printed, or an error was; exit with *out_exit. Lists
 * point into argv; free them with cleave_arguments_free. */
bool cleave_arguments_parse(cleave_arguments_t *arguments, int argc, char **argv, int *out_exit);
void cleave_arguments_free(cleave_arguments_t *arguments);

/* "cleave run: <line>; see 'cleave run --help'" on standard error; returns the exit status for usage. */
int cleave_arguments_fail(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* CLEAVE_CLI_COMMON_ARGUMENTS_H */
