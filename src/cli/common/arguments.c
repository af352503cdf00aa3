// SPDX-License-Identifier: Apache-2.0
// Parsing by table. Every mistake is one line that names the option, what was expected and what was found.
#include "cli/common/arguments.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/common.h"
#include "cli/common/output.h"

int cleave_arguments_fail(const char *command, const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  (void)cleave_show_list(text, sizeof text, format, arguments);
  va_end(arguments);
  cleave_print_error("cleave %s: %s; see 'cleave %s --help'\n", command, text, command);
  return CLEAVE_EXIT_USAGE;
}

/* ---- help ---- */

enum { HELP_INDENT = 24, HELP_WIDTH = 100 };

/* `text` in lines, the first of which starts at column `column`. */
static void print_wrapped(const char *text, int column) {
  int at = column;
  while (*text != '\0') {
    size_t word = strcspn(text, " \n");
    if (at > HELP_INDENT && at + 1 + (int)word > HELP_WIDTH) {
      cleave_print("\n%*s", HELP_INDENT, "");
      at = HELP_INDENT;
    }
    if (at > HELP_INDENT) {
      cleave_print(" ");
      at++;
    }
    cleave_print("%.*s", (int)word, text);
    at += (int)word;
    text += word;
    text += strspn(text, " \n");
  }
  cleave_print("\n");
}

static void print_option(const cleave_option_t *option) {
  char left[64];
  char letter[8] = "    ";
  if (option->letter != 0) {
    (void)snprintf(letter, sizeof letter, "-%c, ", option->letter);
  }
  (void)snprintf(left, sizeof left, "  %s--%s%s%s", letter, option->name, option->value == NULL ? "" : " ",
                 option->value == NULL ? "" : option->value);
  if (strlen(left) + 2 > HELP_INDENT) {
    cleave_print("%s\n%*s", left, HELP_INDENT, "");
  } else {
    cleave_print("%-*s", HELP_INDENT, left);
  }
  print_wrapped(option->help, HELP_INDENT);
}

static void print_help(const cleave_arguments_t *arguments) {
  const cleave_command_t *command = arguments->command;
  cleave_print("usage: cleave %s%s%s%s\n\n" CLEAVE_TRUSTED "\n\noptions:\n", command->name,
               command->operands == NULL ? "" : " ", command->operands == NULL ? "" : command->operands,
               " [options]", command->about);
  for (size_t k = 0; k < arguments->option_count; k++) {
    print_option(&arguments->options[k]);
  }
  size_t common_count = 0;
  const cleave_option_t *common = cleave_common_options(arguments, &common_count);
  for (size_t k = 0; k < common_count; k++) {
    print_option(&common[k]);
  }
  cleave_option_t help = {.name = "help", .letter = 'h', .help = "print this text"};
  print_option(&help);
}

/* ---- parsing ---- */

static int append(cleave_arguments_t *arguments, cleave_text_list_t *list, const char *item) {
  if (list->items == NULL) {
    list->items = cleave_arena_allocate(&arguments->memory, (size_t)arguments->count, sizeof *list->items);
  }
  if (list->items == NULL) {
    return cleave_arguments_fail(arguments->command->name, "out of memory");
  }
  list->items[list->count++] = item;
  return CLEAVE_EXIT_OK;
}

static bool read_int(const char *text, int64_t *out_value) {
  char *end = NULL;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  *out_value = value;
  return errno == 0 && end != text && *end == '\0' && value >= 0;
}

static bool read_number(const char *text, double *out_value) {
  char *end = NULL;
  *out_value = strtod(text, &end);
  return end != text && *end == '\0' && isfinite(*out_value) && *out_value >= 0.0;
}

static int set_option(cleave_arguments_t *arguments, const cleave_option_t *option, const char *value) {
  switch (option->kind) {
    case CLEAVE_OPTION_FLAG: *(bool *)option->target = true; return CLEAVE_EXIT_OK;
    case CLEAVE_OPTION_TEXT: *(const char **)option->target = value; return CLEAVE_EXIT_OK;
    case CLEAVE_OPTION_LIST: return append(arguments, option->target, value);
    case CLEAVE_OPTION_INT:
      if (!read_int(value, option->target)) {
        return cleave_arguments_fail(arguments->command->name,
                                     "option '--%s': expected a whole number from 0, found '%s'",
                                     option->name, value);
      }
      return CLEAVE_EXIT_OK;
    case CLEAVE_OPTION_NUMBER:
      if (!read_number(value, option->target)) {
        return cleave_arguments_fail(arguments->command->name,
                                     "option '--%s': expected a number that is not negative, found '%s'",
                                     option->name, value);
      }
      return CLEAVE_EXIT_OK;
  }
  return CLEAVE_EXIT_OK;
}

/* The long option of this name in a table, or NULL. */
static const cleave_option_t *find_long(const cleave_option_t *options, size_t count, const char *name,
                                        size_t length) {
  for (size_t k = 0; k < count; k++) {
    if (strlen(options[k].name) == length && strncmp(options[k].name, name, length) == 0) {
      return &options[k];
    }
  }
  return NULL;
}

/* The option that `argument` names; *out_value is what follows '=' or a letter, or NULL. */
static const cleave_option_t *find_option(const cleave_arguments_t *arguments, const char *argument,
                                          const char **out_value) {
  *out_value = NULL;
  if (argument[1] != '-') {
    for (size_t k = 0; k < arguments->option_count; k++) {
      if (arguments->options[k].letter == argument[1]) {
        *out_value = argument[2] == '\0' ? NULL : &argument[2];
        return &arguments->options[k];
      }
    }
    return NULL;
  }
  size_t length = strcspn(argument + 2, "=");
  const cleave_option_t *option =
      find_long(arguments->options, arguments->option_count, argument + 2, length);
  if (option == NULL) {
    size_t count = 0;
    const cleave_option_t *common = cleave_common_options(arguments, &count);
    option = find_long(common, count, argument + 2, length);
  }
  if (option != NULL && argument[2 + length] == '=') {
    *out_value = &argument[3 + length];
  }
  return option;
}

static int fail_unknown(const cleave_arguments_t *arguments, const char *argument) {
  char wanted[64];
  char hint[96] = "";
  cleave_nearest_t nearest = {0};
  size_t length = strcspn(argument, "=");
  (void)snprintf(wanted, sizeof wanted, "%.*s", (int)(length < 60 ? length : 60), argument);
  for (size_t k = 0; argument[1] == '-' && k < arguments->option_count; k++) {
    cleave_nearest_offer(&nearest, wanted + 2, arguments->options[k].name);
  }
  size_t common_count = 0;
  const cleave_option_t *common = cleave_common_options(arguments, &common_count);
  for (size_t k = 0; argument[1] == '-' && k < common_count; k++) {
    cleave_nearest_offer(&nearest, wanted + 2, common[k].name);
  }
  if (nearest.name != NULL) {
    (void)snprintf(hint, sizeof hint, " (did you mean '--%s'?)", nearest.name);
  }
  return cleave_arguments_fail(arguments->command->name, "option '%s' is unknown%s", wanted, hint);
}

static int parse_option(cleave_arguments_t *arguments, int *at) {
  const char *value = NULL;
  const cleave_option_t *option = find_option(arguments, arguments->texts[*at], &value);
  if (option == NULL) {
    return fail_unknown(arguments, arguments->texts[*at]);
  }
  if (option->kind == CLEAVE_OPTION_FLAG) {
    if (value != NULL) {
      return cleave_arguments_fail(arguments->command->name, "option '--%s' takes no value", option->name);
    }
  } else if (value == NULL) {
    if (*at + 1 >= arguments->count) {
      return cleave_arguments_fail(arguments->command->name, "option '--%s' needs a value: %s", option->name,
                                   option->value);
    }
    value = arguments->texts[++*at];
  }
  return set_option(arguments, option, value);
}

bool cleave_arguments_parse(cleave_arguments_t *arguments, const cleave_option_t *options,
                            size_t option_count, int *out_exit) {
  const cleave_command_t *command = arguments->command;
  size_t limit = command->max_operands == 0 ? command->min_operands : command->max_operands;
  bool only_operands = false;
  arguments->options = options;
  arguments->option_count = option_count;
  *out_exit = CLEAVE_EXIT_OK;
  for (int at = 0; at < arguments->count && *out_exit == CLEAVE_EXIT_OK; at++) {
    const char *argument = arguments->texts[at];
    if (only_operands || argument[0] != '-' || argument[1] == '\0') {
      *out_exit = arguments->found.count == limit
                      ? cleave_arguments_fail(command->name, "unexpected argument '%s'", argument)
                      : append(arguments, &arguments->found, argument);
    } else if (strcmp(argument, "--") == 0) {
      only_operands = true;
    } else if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
      print_help(arguments);
      return false;
    } else {
      *out_exit = parse_option(arguments, &at);
    }
  }
  if (*out_exit == CLEAVE_EXIT_OK && arguments->found.count < command->min_operands) {
    *out_exit = cleave_arguments_fail(command->name, "expected %s", command->operands);
  }
  if (*out_exit == CLEAVE_EXIT_OK) {
    *out_exit = cleave_common_apply(arguments);
  }
  return *out_exit == CLEAVE_EXIT_OK;
}

void cleave_arguments_free(cleave_arguments_t *arguments) {
  cleave_common_free();
  cleave_arena_deinit(&arguments->memory);
}
