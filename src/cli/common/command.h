// SPDX-License-Identifier: Apache-2.0
/*
 * Commands of the program. A command is one file, command_<name>.c, that defines
 * `const cleave_command_t cleave_command_<name>`: the table is generated from the files.
 */
#ifndef CLEAVE_CLI_COMMON_COMMAND_H
#define CLEAVE_CLI_COMMON_COMMAND_H

typedef struct cleave_command {
  const char *name;
  const char *summary; /* one line, for the list of commands */
  int order;           /* in that list; smaller first */
  /* `argv` without program and command name. Returns the exit status. */
  int (*run)(int argc, char **argv);
} cleave_command_t;

/* Exit statuses of all commands. */
enum { CLEAVE_EXIT_OK = 0, CLEAVE_EXIT_FAILURE = 1, CLEAVE_EXIT_USAGE = 2 };

#endif /* CLEAVE_CLI_COMMON_COMMAND_H */
