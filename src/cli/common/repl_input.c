// SPDX-License-Identifier: Apache-2.0
// Lines from a terminal or a pipe, chunks of them, and Ctrl-C. The signal handler only sets what others look
// at.
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

static const cleave_repl_target_t *session;
static volatile sig_atomic_t is_running;
static volatile sig_atomic_t was_interrupted;

static void on_interrupt(int signal_number) {
  (void)signal_number;
  was_interrupted = 1;
  if (is_running != 0) {
    session->interrupt(session->context);
  }
}

bool cleave_repl_input_is_terminal(void) {
  return isatty(STDIN_FILENO) != 0;
}

/* While a chunk runs, Ctrl-C ends it. */
static void guard(bool running) {
  was_interrupted = 0;
  is_running = running;
}

typedef enum repl_line {
  LINE_READ,
  LINE_DROPPED, /* Ctrl-C: what was typed so far is void */
  LINE_END
} repl_line_t;

static const char *prompt_of(bool continues) {
  return continues ? ">> " : "> ";
}

static repl_line_t read_plain(bool continues, char **out_line) {
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
    return dropped ? LINE_DROPPED : LINE_END;
  }
  if (length > 0 && (*out_line)[length - 1] == '\n') {
    (*out_line)[length - 1] = '\0';
  }
  return LINE_READ;
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
  if (session->complete(session->context, rl_line_buffer, (size_t)end, &begin, &completions, &error) !=
      CLEAVE_OK) {
    return NULL;
  }
  return rl_completion_matches(word, give_completion);
}

static repl_line_t read_edited(bool continues, char **out_line) {
  *out_line = readline(prompt_of(continues));
  if (*out_line != NULL) {
    return LINE_READ;
  }
  cleave_print("\n");
  return was_interrupted != 0 ? LINE_DROPPED : LINE_END;
}

static void begin(void) {
  static char break_characters[] = " \t\n\"'`@$><=;|&{(.:,[+-*/%#~^)}]";
  static char program[] = "cleave";
  struct sigaction action = {.sa_handler = on_interrupt};
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

static repl_line_t read_line(bool continues, char **out_line) {
  *out_line = NULL;
  return cleave_repl_input_is_terminal() ? read_edited(continues, out_line) : read_plain(continues, out_line);
}

static void remember(const char *chunk) {
  if (cleave_repl_input_is_terminal()) {
    (void)add_history(chunk);
  }
}

#else

static void begin(void) {
  struct sigaction action = {.sa_handler = on_interrupt};
  (void)sigemptyset(&action.sa_mask);
  (void)sigaction(SIGINT, &action, NULL);
}

static repl_line_t read_line(bool continues, char **out_line) {
  *out_line = NULL;
  return read_plain(continues, out_line);
}

static void remember(const char *chunk) {
  (void)chunk;
}

#endif

static cleave_status_t read_and_run(cleave_error_t *error) {
  cleave_text_t chunk = {0};
  bool incomplete = false;
  for (;;) {
    char *line = NULL;
    repl_line_t kind = read_line(incomplete, &line);
    if (kind == LINE_END) {
      break;
    }
    if (kind == LINE_READ) {
      cleave_text_add(&chunk, chunk.length > 0 ? "\n" : "");
      cleave_text_add(&chunk, line);
    }
    free(line);
    if (chunk.failed) {
      break;
    }
    bool is_blank = strspn(cleave_text_get(&chunk), " \t\r\n") == chunk.length;
    incomplete = false;
    if (kind == LINE_READ && !is_blank) {
      guard(true);
      incomplete = session->run(session->context, cleave_text_get(&chunk), chunk.length);
      guard(false);
    }
    if (!incomplete) {
      if (!is_blank) {
        remember(cleave_text_get(&chunk));
      }
      cleave_text_deinit(&chunk);
      chunk = (cleave_text_t){0};
    }
  }
  cleave_status_t status = cleave_text_check(&chunk, error);
  if (status == CLEAVE_OK && incomplete) {
    status = cleave_error_set(error, CLEAVE_ERROR_FORMAT, "the input ends in the middle of a chunk");
  }
  cleave_text_deinit(&chunk);
  return status;
}

cleave_status_t cleave_repl_input_run(const cleave_repl_target_t *target, cleave_error_t *error) {
  session = target;
  begin();
  return read_and_run(error);
}
