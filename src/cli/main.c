// SPDX-License-Identifier: Apache-2.0
// The program `cleave`: finds the command and hands over. The commands are the files command_*.c.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/arguments.h"
#include "cli/common/output.h"

#define CLEAVE_COMMAND(name) extern const cleave_command_t cleave_command_##name;
#include "commands.inc"
#undef CLEAVE_COMMAND

#define CLEAVE_COMMAND(name) &cleave_command_##name,
static const cleave_command_t *const commands[] = {
#include "commands.inc"
};
#undef CLEAVE_COMMAND

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static const cleave_command_t *find(const char *name) {
  for (size_t k = 0; k < COMMAND_COUNT; k++) {
    if (strcmp(commands[k]->name, name) == 0) {
      return commands[k];
    }
  }
  return NULL;
}

static int compare_order(const void *a, const void *b) {
  const cleave_command_t *const *left = a;
  const cleave_command_t *const *right = b;
  int order = ((*left)->order > (*right)->order) - ((*left)->order < (*right)->order);
  return order != 0 ? order : strcmp((*left)->name, (*right)->name);
}

static void print_help(void) {
  const cleave_command_t *sorted[COMMAND_COUNT];
  memcpy(sorted, commands, sizeof commands);
  qsort(sorted, COMMAND_COUNT, sizeof sorted[0], compare_order);
  cleave_print(
      "usage: cleave COMMAND [arguments]\n\n"
      "Splits neural networks by rules, fuses operators into kernels, and runs them.\n\n"
      "commands:\n");
  for (size_t k = 0; k < COMMAND_COUNT; k++) {
    cleave_print("  %-12s %s\n", sorted[k]->name, sorted[k]->summary);
  }
  cleave_print(
      "\n'cleave COMMAND --help' explains a command and its options.\n"
      "Exit status: 0 done, 1 failed, 2 wrong usage.\n");
}

static int fail_unknown(const char *name) {
  cleave_nearest_t nearest = {0};
  for (size_t k = 0; k < COMMAND_COUNT; k++) {
    cleave_nearest_offer(&nearest, name, commands[k]->name);
  }
  cleave_print_error("cleave: command '%s' is unknown%s; see 'cleave --help'\n", name,
                     cleave_nearest_hint(&nearest));
  return CLEAVE_EXIT_USAGE;
}

/* The process in which a command is at work that nothing but itself may end; 0: none. Processes that
 * libraries fork are others. */
static pid_t working_process;

/* Whoever looks at the exit status is to know that a library ended the command half-way. */
static void end_early(void) {
  if (working_process != getpid()) {
    return;
  }
  (void)fflush(stdout);
  cleave_output_progress_end();
  cleave_print_error("cleave: a library ended this process before the command was done; see --isolate\n");
  _exit(CLEAVE_EXIT_FAILURE);
}

/* The output counts as written once it has left the buffer. */
static int finish(const char *command, int status) {
  if (fflush(stdout) != 0 || ferror(stdout)) {
    cleave_print_error("cleave %s: the output could not be written\n", command);
    return CLEAVE_EXIT_FAILURE;
  }
  return status;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    cleave_print_error("cleave: expected a command; see 'cleave --help'\n");
    return CLEAVE_EXIT_USAGE;
  }
  const char *name = argv[1];
  if (strcmp(name, "--version") == 0) {
    name = "version";
  }
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || (strcmp(name, "help") == 0 && argc == 2)) {
    print_help();
    return finish(name, CLEAVE_EXIT_OK);
  }
  char *help_arguments[] = {"--help"};
  bool wants_help = strcmp(name, "help") == 0;
  const cleave_command_t *command = find(wants_help ? argv[2] : name);
  if (command == NULL) {
    return fail_unknown(wants_help ? argv[2] : name);
  }
  cleave_arguments_t arguments = {.command = command,
                                  .count = wants_help ? 1 : argc - 2,
                                  .texts = wants_help ? help_arguments : argv + 2};
  working_process = command->may_exit ? 0 : getpid();
  (void)atexit(end_early);
  int status = command->run(&arguments);
  working_process = 0;
  cleave_arguments_free(&arguments);
  return finish(command->name, status);
}
