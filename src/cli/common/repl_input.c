// SPDX-License-Identifier: Apache-2.0
// Lines from a terminal or a pipe, and Ctrl-C. The signal handler only sets what others look at.
#include "cli/common/repl_input.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/output.h"

#ifdef CLEAVE_EDITLINE
#include <editline/readline.h>
#endif

static cleave_repl_t *session;
static volatile sig_atomic_t is_running;
static volatile sig_atomic_t was_interrupted;

static void on_interrupt(int signal_number) {
  (void)signal_number;
  was_interrupted = 1;
  if (is_running != 0) {
    cleave_repl_interrupt(session);
  }
}

bool cleave_repl_input_is_terminal(void) {
  return isatty(STDIN_FILENO) != 0;
}

void cleave_repl_input_guard(bool running) {
  was_interrupted = 0;
  is_running = running;
}

static const char *prompt_of(bool continues) {
  return continues ? ">> " : "> ";
}

static cleave_repl_line_t read_plain(bool continues, char **out_line) {
  size_t capacity = 0;
  if (cleave_repl_input_is_terminal()) {
    cleave_print(CLEAVE_TRUSTED, prompt_of(continues));
    (void)fflush(stdout);
  }
  errno = 0;
  ssize_t length = getline(out_line, &capacity, stdin);
  if (length < 0) {
    bool dropped = errno == EINTR;
    free(*out_line);
    *out_line = NULL;
    clearerr(stdin);
    return dropped ? CLEAVE_REPL_LINE_DROPPED : CLEAVE_REPL_LINE_END;
  }
  if (length > 0 && (*out_line)[length - 1] == '\n') {
    (*out_line)[length - 1] = '\0';
  }
  return CLEAVE_REPL_LINE_READ;
}

#ifdef CLEAVE_EDITLINE

/* The words that complete the line, one after the other. */
static cleave_text_t completions;
static const char *next_completion;

static char *give_completion(const char *word, int state) {
  (void)word;
  next_completion = state == 0 ? cleave_text_get(&completions) : next_completion;
  size_t length = strcspn(next_completion, "\n");
  if (length == 0) {
    return NULL;
  }
  char *copy = malloc(length + 1);  // the library frees it
  if (copy != NULL) {
    memcpy(copy, next_completion, length);
    copy[length] = '\0';
  }
  next_completion += length + (next_completion[length] == '\n');
  return copy;
}

static char **complete(const char *word, int start, int end) {
  size_t begin = 0;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  (void)start;
  cleave_text_deinit(&completions);
  completions = (cleave_text_t){0};
  rl_attempted_completion_over = 1;
  if (cleave_repl_complete(session, rl_line_buffer, (size_t)end, &begin, &completions, &error) != CLEAVE_OK) {
    return NULL;
  }
  return rl_completion_matches(word, give_completion);
}

static cleave_repl_line_t read_edited(bool continues, char **out_line) {
  *out_line = readline(prompt_of(continues));
  if (*out_line != NULL) {
    return CLEAVE_REPL_LINE_READ;
  }
  cleave_print("\n");
  return was_interrupted != 0 ? CLEAVE_REPL_LINE_DROPPED : CLEAVE_REPL_LINE_END;
}

void cleave_repl_input_begin(cleave_repl_t *repl) {
  static char break_characters[] = " \t\n\"'`@$><=;|&{(.:,[+-*/%#~^)}]";
  static char program[] = "cleave";
  struct sigaction action = {.sa_handler = on_interrupt};
  session = repl;
  (void)sigemptyset(&action.sa_mask);
  (void)sigaction(SIGINT, &action, NULL);
  if (cleave_repl_input_is_terminal()) {
    rl_readline_name = program;
    rl_basic_word_break_characters = break_characters;
    rl_completion_append_character = 0;
    rl_attempted_completion_function = complete;
    (void)rl_initialize();
    (void)sigaction(SIGINT, &action, NULL);  // the library may have set its own
    using_history();
    stifle_history(1000);
  }
}

cleave_repl_line_t cleave_repl_input_read(bool continues, char **out_line) {
  *out_line = NULL;
  return cleave_repl_input_is_terminal() ? read_edited(continues, out_line) : read_plain(continues, out_line);
}

void cleave_repl_input_remember(const char *chunk) {
  if (cleave_repl_input_is_terminal()) {
    (void)add_history(chunk);
  }
}

#else

void cleave_repl_input_begin(cleave_repl_t *repl) {
  struct sigaction action = {.sa_handler = on_interrupt};
  session = repl;
  (void)sigemptyset(&action.sa_mask);
  (void)sigaction(SIGINT, &action, NULL);
}

cleave_repl_line_t cleave_repl_input_read(bool continues, char **out_line) {
  *out_line = NULL;
  return read_plain(continues, out_line);
}

void cleave_repl_input_remember(const char *chunk) {
  (void)chunk;
}

#endif
