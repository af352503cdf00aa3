// SPDX-License-Identifier: Apache-2.0
/*
 * Commands of the program. A command is one file, command_<name>.c, that defines it with
 * CLEAVE_COMMAND_DEFINE(<name>, ...): the table is generated from the files.
 */
#ifndef CLEAVE_CLI_COMMON_COMMAND_H
#define CLEAVE_CLI_COMMON_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct cleave_arguments;

typedef struct cleave_command {
  const char *name;
  const char *summary;  /* one line, for the list of commands */
  int order;            /* in that list; smaller first, then by name */
  const char *operands; /* for the usage line: "MODEL"; NULL: it has none */
  const char *about;    /* what the command does, in lines of at most 100 characters */
  size_t min_operands;
  size_t max_operands; /* 0: as many as min_operands */
  bool makes_sessions; /* it also has the options of sessions (cli/common/common.h) */
  bool may_exit;       /* programs that it runs may end it: os.exit of Lua */
  /* Parses its arguments (cli/common/arguments.h), and does what they say. Returns the exit status. */
  int (*run)(struct cleave_arguments *arguments);
} cleave_command_t;

/* Defines the command, by these members and, behind `about`, others that are not zero. */
#define CLEAVE_COMMAND_DEFINE(name_, order_, operands_, run_, summary_, ...) \
  const cleave_command_t cleave_command_##name_ = {.name = #name_,           \
                                                   .summary = summary_,      \
                                                   .order = order_,          \
                                                   .operands = operands_,    \
                                                   .run = run_,              \
                                                   .about = __VA_ARGS__};

/* Exit statuses of all commands. */
enum { CLEAVE_EXIT_OK = 0, CLEAVE_EXIT_FAILURE = 1, CLEAVE_EXIT_USAGE = 2 };

#endif /* CLEAVE_CLI_COMMON_COMMAND_H */
