// SPDX-License-Identifier: Apache-2.0
/*
 * The Lua host: one interpreter with a memory cap and a time budget, and the one place where C calls Lua.
 *
 * Every call ends, whatever the script does. A hook that runs every few hundred instructions raises an error
 * once the budget is spent, and from then on at every instruction. The allocator refuses memory beyond the
 * cap, which ends the call as well. pcall, xpcall and coroutines pass these two errors on (sandbox.c). C
 * functions that loop on a script's behalf count steps (cleave_script_step); no single operation of the
 * interpreter is slow, because strings and tables are bounded. C functions that can raise own neither memory
 * nor locks.
 */
#ifndef CLEAVE_SCRIPT_STATE_SCRIPT_H
#define CLEAVE_SCRIPT_STATE_SCRIPT_H

#include <lauxlib.h>
#include <lua.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "script/state/embedded.h"
#include "system/file.h"

/* ---- limits of one interpreter ---- */

#define CLEAVE_SCRIPT_MEMORY_LIMIT ((size_t)256 << 20)      /* all of its memory */
#define CLEAVE_SCRIPT_BLOCK_LIMIT ((size_t)32 << 20)        /* one table */
#define CLEAVE_SCRIPT_STRING_LIMIT ((size_t)1 << 20)        /* one string that the script makes */
#define CLEAVE_SCRIPT_TEXT_LIMIT CLEAVE_SCRIPT_STRING_LIMIT /* one file */
#define CLEAVE_SCRIPT_FILE_LIMIT 64                         /* files: the script and what it includes */
#define CLEAVE_SCRIPT_INCLUDE_DEPTH 16                      /* depth of includes */
#define CLEAVE_SCRIPT_RESULT_LIMIT 8192                     /* results of table.unpack and string.byte */

/* Milliseconds that a call may take. Loading is limited by the wall clock. A callback is limited by the
 * thread's processor time, because its budget is so short that on a busy machine a good rule would fail by
 * the wall clock. By the wall clock a callback has the same limit as a load; so a thread that gets less than
 * a twentieth of a core fails. */
#define CLEAVE_SCRIPT_LOAD_BUDGET 2000u /* a rule file with all that it includes; the graph of a test */
#define CLEAVE_SCRIPT_CALLBACK_BUDGET 100u
#define CLEAVE_SCRIPT_PASS_BUDGET 2000u /* a pass over a whole graph, the gradient of one node */
#define CLEAVE_SCRIPT_MODEL_BUDGET 60000u
#define CLEAVE_SCRIPT_WALL_LIMIT(budget) \
  ((budget) > CLEAVE_SCRIPT_LOAD_BUDGET ? (budget) : CLEAVE_SCRIPT_LOAD_BUDGET)

/* A line of one of the script's files, as one number: the file's index and the line; 0 is nowhere. In the
 * first file, the script itself, a place is the line. */
enum { CLEAVE_PLACE_LINE_BITS = 24 };
static inline int cleave_place_line(int place) {
  return place & ((1 << CLEAVE_PLACE_LINE_BITS) - 1);
}
static inline int cleave_place_file(int place) {
  return place >> CLEAVE_PLACE_LINE_BITS;
}

/* A source file of the script. The first is the script itself. */
typedef struct cleave_script_file {
  char *path;                    /* as errors show it, and as it can be opened; a copy */
  char short_source[LUA_IDSIZE]; /* as Lua shows it in messages */
  cleave_file_t *content;        /* of an included file; NULL for others */
} cleave_script_file_t;

/* Calls that an error lists. */
enum { CLEAVE_SCRIPT_MAX_CALLS = 4 };

/* Which limit ended the call. */
typedef enum cleave_script_end {
  CLEAVE_SCRIPT_RUNS,
  CLEAVE_SCRIPT_OUT_OF_TIME,
  CLEAVE_SCRIPT_OUT_OF_TOTAL, /* the budget of all calls of the context together */
  CLEAVE_SCRIPT_OUT_OF_CLOCK, /* the wall clock's limit, with less than the budget of processor time */
  CLEAVE_SCRIPT_OUT_OF_MEMORY,
  CLEAVE_SCRIPT_OUT_OF_BLOCK, /* in one piece */
  CLEAVE_SCRIPT_OUT_OF_STRING
} cleave_script_end_t;

typedef struct cleave_script {
  lua_State *state;
  lua_State *running;        /* `state`, or the coroutine at work */
  const char *path;          /* of files[0] */
  cleave_context_t *context; /* borrowed: its libraries are available; NULL: those of the process */
  cleave_status_t failure;   /* status of a plain script error: RULE, or FORMAT for models */
  cleave_script_file_t files[CLEAVE_SCRIPT_FILE_LIMIT];
  uint32_t file_count;

  size_t memory_used;
  size_t memory_since_check; /* grown since the clock was last read */
  bool memory_refused;       /* a first refusal; if Lua's collection does not help, the second one ends the
                                call */

  uint32_t budget;      /* milliseconds of this call */
  atomic_bool is_ended; /* set from outside, even by signal handlers: the budget of this call counts as
                           spent */
  uint64_t wall_start;  /* cleave_clock_now at the start of this call */
  uint64_t total_left;  /* nanoseconds of the context's total at the start; UINT64_MAX: no limit */
  uint64_t work_start;  /* processor time of the thread when the clock was first read in this call; if
                           the budget is less than the limit by the wall clock */
  uint64_t last_check;  /* cleave_clock_now when the hook last ran */
  int hook_interval;    /* instructions until it runs next */
  bool work_is_counted; /* work_start is set */
  uint32_t steps;       /* of C loops, since the clock was last read */
  uint32_t close_depth; /* depth of coroutines that close each other */
  cleave_script_end_t end;
  int end_place;
  int error_place;                          /* where the script was when the error was raised */
  int error_calls[CLEAVE_SCRIPT_MAX_CALLS]; /* places on the stack at that time, the innermost first; 0: no
                                               more */
  bool error_is_placed;                     /* error_place is of an inner error that is being raised */
  struct cleave_include *include;           /* while the script may include files (include.h) */

  char open[256]; /* the open size that this call read last, for messages; "": none */

  cleave_status_t raised; /* status of the C error that is being raised; CLEAVE_OK: none */
  cleave_error_t checked; /* an error that is being raised and has its place already */
  /* Rule at work, for messages; kind NULL: none. Borrowed, or in rule_text. */
  const char *rule_kind;
  const char *rule_name;
  int rule_place;
  char rule_text[2][64];

  /* Handles refer to this (handles.h); it is set while a callback runs. */
  const cleave_graph_t *graph;
  uint64_t serial; /* of the graph; handles of another serial are stale */
  struct {
    uint64_t graph; /* its identity */
    const void *nodes, *uses;
    size_t node_count, value_count, use_count, live_node_count;
  } seen;               /* graph of `serial` */
  uint64_t call_serial; /* counts calls; matches and proposals live for one */
  const void *subject;  /* match or proposal of this call */
  cleave_node_t node;   /* that this call is about, for messages; NONE if there is no graph */

  void *owner; /* of the creator of the script: the model under construction */
} cleave_script_t;

/* Makes an interpreter with no script in it. `path` is for messages; `register_host` fills the table on top
 * of the stack with the C functions that the host's own modules get (script/sandbox/host.h). */
CLEAVE_STATUS cleave_script_create(const char *path, cleave_status_t failure,
                                   void (*register_host)(lua_State *state), cleave_script_t **out_script,
                                   cleave_error_t *error);
void cleave_script_destroy(cleave_script_t *script);

/* Runs `body(state, context)` protected, with a budget in milliseconds. Everything that touches Lua runs in
 * such a body. An error becomes file:line, rule and message in `error`. Not reentrant. */
typedef void (*cleave_script_body_t)(lua_State *state, void *context);
CLEAVE_STATUS cleave_script_call(cleave_script_t *script, cleave_script_body_t body, void *context,
                                 uint32_t budget, cleave_error_t *error);

/* Names the rule at work for messages; kind NULL: none. The strings must stay valid until the next call. */
void cleave_script_set_rule(cleave_script_t *script, const char *kind, const char *name, int place);

/* Path of the file that a place is in. */
const char *cleave_script_path_at(const cleave_script_t *script, int place);

/* ---- for C functions that Lua calls ---- */

static inline cleave_script_t *cleave_script_of(lua_State *state) {
  return *(cleave_script_t **)lua_getextraspace(state);
}

/* The running place: that of the innermost function defined in the script's own source; 0 if there is none.
 * The second function returns the line only. */
int cleave_script_place(lua_State *state);
int cleave_script_line(lua_State *state);
/* Place of a line of the chunk that Lua calls `source`; 0 if that is not a file of the script. */
int cleave_script_place_of(const cleave_script_t *script, const char *source, int line);

/* Raises "file:line: message"; the second takes a place. Do not return. */
int cleave_script_raise(lua_State *state, const char *format, ...) CLEAVE_PRINTF(2, 3);
int cleave_script_raise_at(lua_State *state, int place, const char *format, ...) CLEAVE_PRINTF(3, 4);
/* Raises `error` with its status. */
int cleave_script_raise_error(lua_State *state, const cleave_error_t *error);
/* Raises an error that has its place and rule already, and is reported unchanged. */
int cleave_script_raise_checked(lua_State *state, const cleave_error_t *error);

/* Message handler that only records the place, for errors without one in their message, and the calls that
 * led there. */
int cleave_script_note_place(lua_State *state);

/* Counts work done in C, a step for about ten nanoseconds; raises once the budget is spent. */
void cleave_script_step(lua_State *state, uint32_t steps);
/* Raises again if the call is at its end: for functions that catch errors. */
void cleave_script_pass_end_on(lua_State *state);
/* Begins to count for a thread of the interpreter: a coroutine that is resumed. */
void cleave_script_watch(lua_State *state);
/* Ends counting instructions of this thread until the call ends or cleave_script_watch: while only code that
 * is built in runs, and nothing that a script made. Memory is limited as before. Returns whether they were
 * counted. */
bool cleave_script_trust(lua_State *state);

/* Pushes the module lua/cleave/<name>.lua, run once per interpreter with (host, import). */
void cleave_script_import(lua_State *state, const char *name);
/* Pushes the table of C functions that the modules get as `host`. */
void cleave_script_push_host(lua_State *state);

/* Compiles the script's source and pushes it as a function whose globals are the table at `environment`. */
void cleave_script_load_text(lua_State *state, const char *text, size_t length, int environment);
/* Loads the source of another file of the script in the same way. */
void cleave_script_load_file(lua_State *state, uint32_t file, const char *text, size_t length,
                             int environment);

/* Loads a built-in file in the same way; the script's file has its path. */
void cleave_script_load_embedded(lua_State *state, uint32_t file, const cleave_embedded_file_t *embedded,
                                 int environment);

/* Adds a file of that path, and returns its index; raises if there are too many. */
uint32_t cleave_script_add_file(lua_State *state, const char *path);

/* script_limits.c: Time and memory of one interpreter: what script.c needs of script_limits.c. */

/* lua_Alloc over a cleave_script_t. */
void *cleave_script_allocate(void *context, void *memory, size_t old_size, size_t size);

/* Begins a call with all of its budget, in milliseconds. */
void cleave_script_begin(cleave_script_t *script, uint32_t budget);
/* Ends a call: its time counts against the context's total. */
void cleave_script_finish(cleave_script_t *script);

/* script_error.c: From Lua errors to C errors: what script.c needs of script_error.c. */

/* Forgets the error of the last call. */
void cleave_script_errors_begin(cleave_script_t *script);

/* Fills in the error of a call that ended with `code`; its value is on top of the stack. Only reads strings,
 * so nothing here can raise. */
cleave_status_t cleave_script_convert_error(cleave_script_t *script, int code, cleave_error_t *error);

#endif /* CLEAVE_SCRIPT_STATE_SCRIPT_H */
