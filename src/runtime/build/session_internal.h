// SPDX-License-Identifier: Apache-2.0
/*
 * Inside a session, shared by the files that build it (this room; session_build.h lists them) and by those
 * that run and read it (runtime/session).
 *
 * A target is a backend, or one device of it: what steps run on. A place is where values lie: 0 is host
 * memory, which `cpu`, backends without devices, and devices that share host memory work on; a device with
 * memory of its own is a place with the number of its target.
 *
 * A slot is a value that exists between steps, in one place. Its memory is one of:
 *   USER    the buffer that was given for a graph input
 *   CONSTANT a tensor of the graph, or its copy on a device
 *   BLOCK   planned memory: an offset in the shared block of its place, or in the buffer of the outputs
 *   OWNED   memory of its own, for a shape that is known only at run time; always of the host
 *   ALIAS   the memory of another slot (Reshape and its like)
 * A value that is read in several places has a slot in each: the first is the one that is computed, the
 * others are written by copy steps. Steps hold copies of slot views (`inputs`, `outputs`). Those that show a
 * user's buffer are patched when another one is given; those of dynamic steps are copied anew in each run.
 * Other steps never see owned memory: their shapes are all known.
 */
#ifndef CLEAVE_RUNTIME_BUILD_SESSION_INTERNAL_H
#define CLEAVE_RUNTIME_BUILD_SESSION_INTERNAL_H

#include "backend/program/backend_options.h"
#include "backend/program/device.h"
#include "backend/program/program_cache.h"
#include "backend/region/view.h"
#include "backend/registry/registry.h"
#include "partition/plan/plan.h"
#include "runtime/build/statistics.h"
#include "runtime/lanes/flow.h"
#include "runtime/lanes/lane_device.h"

enum { CLEAVE_PLACE_HOST = 0 };

typedef enum cleave_slot_kind {
  CLEAVE_SLOT_USER,
  CLEAVE_SLOT_CONSTANT,
  CLEAVE_SLOT_BLOCK,
  CLEAVE_SLOT_OWNED,
  CLEAVE_SLOT_ALIAS
} cleave_slot_kind_t;

typedef struct cleave_slot {
  cleave_slot_kind_t kind;
  cleave_value_t value;
  uint32_t place;
  uint32_t root;   /* ALIAS: the slot whose memory it is (never itself an alias); others: their own number */
  uint32_t block;  /* BLOCK: in session->blocks */
  bool is_output;  /* a graph output, or an alias of it is one */
  bool is_set;     /* USER: given */
  uint32_t writer; /* step that writes the memory, or NONE */
  uint32_t last;   /* last step that reads the memory */
  size_t bytes;    /* of a known shape */
  size_t capacity; /* OWNED: of `view.data` */
  cleave_tensor_view_t view;
  int64_t dims[CLEAVE_MAX_RANK];
} cleave_slot_t;

/* Planned memory of one value, or of several that take over from each other in place. */
typedef struct cleave_block {
  uint32_t place;
  size_t bytes;
  size_t offset;
  uint32_t first; /* steps */
  uint32_t last;
  bool is_output; /* in the buffer of the outputs, not shared */
  uint32_t patch; /* of the outputs: first place that shows it, in session->patches */
  uint32_t slots; /* roots that lie in it */
} cleave_block_t;

enum { CLEAVE_DYNAMIC_PROGRAMS = 8 };

/* A program of a dynamic step, for one set of shapes. */
typedef struct cleave_dynamic_program {
  cleave_program_t *program; /* NULL: the entry is free */
  uint32_t target;           /* that it is for: the step's, or `cpu` if that one refused */
  uint64_t key;              /* hash of the shapes of inputs and outputs */
  uint64_t used;             /* number of the run that used it last */
} cleave_dynamic_program_t;

/* Something that has to have happened on another stream before a step starts. */
typedef struct cleave_wait {
  uint32_t source; /* target on whose stream it happens */
  uint32_t waiter; /* target whose stream waits, or NONE: the host does */
  uint32_t step;   /* the last one that is then known to be done */
  void *event;     /* recorded behind it; NULL: the end of all that is on the stream */
} cleave_wait_t;

typedef enum cleave_step_kind {
  CLEAVE_STEP_PROGRAM,
  CLEAVE_STEP_DYNAMIC,
  CLEAVE_STEP_COPY
} cleave_step_kind_t;

typedef struct cleave_step {
  cleave_step_kind_t kind;
  bool is_left_out;          /* its result is not requested */
  bool to_device;            /* COPY */
  uint32_t target;           /* of a copy: the device */
  uint32_t lane;             /* of the session's, if it has lanes */
  cleave_program_t *program; /* PROGRAM */
  cleave_run_args_t args;
  uint32_t input_count;
  uint32_t output_count;
  cleave_tensor_view_t *inputs; /* args.inputs */
  cleave_tensor_view_t *outputs;
  uint32_t *input_slots;
  const uint32_t *output_slots;
  struct cleave_step_fallback *fallback; /* in the place of a backend that failed; NULL until then */
  cleave_request_t *requests;            /* per output, of steps whose backend adds; NULL for others */
  const char *name;
  const char *op;
  const char *backend;
  uint32_t region;
  cleave_node_t node;
  const cleave_node_t *nodes; /* as in the view */
  uint32_t node_count;
  size_t copied_bytes; /* COPY */
  /* streams */
  cleave_wait_t *waits;
  uint32_t wait_count;
  void *event; /* recorded behind the step; NULL: nobody waits for it alone */
  /* dynamic */
  cleave_dynamic_program_t *programs; /* CLEAVE_DYNAMIC_PROGRAMS of them */
  uint32_t *port_slots;               /* per input port, then per output port of the node: slot, or NONE */
  uint32_t port_count;
  bool is_refused; /* by its backend: it runs on the target `alone` */
  bool has_failed; /* there, and is not tried there again */
  uint32_t alone;  /* target that runs the node outside of regions */
  /* profile */
  uint64_t start_ns;
  uint64_t end_ns;
  cleave_step_time_t *parts; /* copies */
  uint32_t part_count;
  uint32_t part_capacity;
} cleave_step_t;

/* A view of a slot, whose address is set once memory is there. */
typedef struct cleave_patch {
  uint32_t next; /* of the same root slot, or block; NONE ends */
  uint32_t slot; /* whose view it copies */
  cleave_tensor_view_t *view;
} cleave_patch_t;

typedef struct cleave_target {
  const cleave_backend_handle_t *handle;
  cleave_device_t *device; /* NULL: the backend has none */
  uint32_t place;          /* CLEAVE_PLACE_HOST, or its own number */
  uint32_t memory;         /* of views: CLEAVE_MEMORY_HOST, or the device's number + 1 */
  const char *label;       /* "mirror:0", or the backend's name if it has no devices */
  cleave_compile_options_t compile_options;
  CLEAVE_ARRAY(cleave_key_value_t) run_options; /* texts are owned */
  void *stream;                                 /* NULL: everything is done on return */
  uint32_t lane;                                /* of its programs, if it has a device and there are lanes */
  uint32_t copy_lane;                           /* to the device; the next one is from it. NONE: `lane` */
  bool is_busy; /* something was put on the stream since the host last waited for all of it */
  /* a device with memory of its own */
  unsigned char *memory_blocks; /* blocks, then workspace */
  unsigned char *constants;
  bool is_abandoned;          /* it failed: `cpu` does its work, and its values lie in `host_blocks` */
  unsigned char *host_blocks; /* owned */
  cleave_stage_t stage;       /* of dynamic steps */
  cleave_session_device_t statistics;
} cleave_target_t;

/* An output as cleave_session_set_output has set it. */
typedef struct cleave_output {
  uint32_t slot;
  cleave_request_t request;
  bool has_memory; /* the user's: `view` shows it */
  bool is_direct;  /* the step that computes the output writes there, adding if it is asked to */
  uint64_t set_at; /* number of the run before memory and request were set last: only later ones count */
  cleave_tensor_view_t view;
  int64_t dims[CLEAVE_MAX_RANK];
} cleave_output_t;

/* An output that is an input of the next run (session_state.c). */
typedef struct cleave_state {
  uint32_t input;
  uint32_t output;
  bool is_shared;   /* both lie in memory[0] */
  bool is_given;    /* the input has been set since the last run: the output does not take its place */
  uint32_t current; /* memory of the input; the output is in the other, unless it is shared */
  unsigned char *memory[2]; /* owned */
} cleave_state_t;

/* Backends whose devices failed when a session was to be made, and why: `cpu` gets their regions. */
enum { CLEAVE_MAX_WITHOUT = 8 };
typedef struct cleave_without {
  uint32_t count;
  const cleave_backend_handle_t *handles[CLEAVE_MAX_WITHOUT];
  cleave_error_t reasons[CLEAVE_MAX_WITHOUT];
} cleave_without_t;

/* The programs of regions for one thread, which run while processors are taken (session_single.c). */
typedef enum cleave_single_state {
  CLEAVE_SINGLE_UNTRIED,
  CLEAVE_SINGLE_READY,
  CLEAVE_SINGLE_REFUSED
} cleave_single_state_t;

/* The program and workspace that a step does not use now. */
typedef struct cleave_single_step {
  uint32_t step;
  cleave_program_t *program;
  void *workspace;
} cleave_single_step_t;

typedef struct cleave_single {
  cleave_single_state_t state;
  bool is_on;
  uint32_t runs;  /* while processors are taken */
  uint64_t ns[2]; /* smoothed time of such a run: on all threads, on one; 0: not known */
  uint32_t step_count;
  cleave_single_step_t *steps;
  void *workspace; /* owned */
} cleave_single_t;

/* The result of a stream, which the host learns when it waits for it. */
typedef struct cleave_late {
  bool is_late;
  cleave_status_t status;
  const char *label; /* of its target */
  cleave_message_t message;
} cleave_late_t;

/* Steps side by side (session_lanes.c). */
typedef struct cleave_session_lanes {
  cleave_lanes_t order;
  cleave_flow_lane_t *places; /* by lane */
  size_t *workspaces;         /* by lane: where its workspace begins in that of its place */
  uint32_t device_count;      /* of the engine */
  cleave_engine_device_t *devices;
  cleave_lane_device_t *streams; /* by device of the engine */
  cleave_flow_t *flow;           /* NULL: to be made anew */
} cleave_session_lanes_t;

struct cleave_session {
  cleave_arena_t arena;        /* everything below that is not said to be elsewhere */
  cleave_model_t *model;       /* retained, or NULL */
  const cleave_graph_t *graph; /* that runs */
  cleave_graph_t *bound;       /* owned copy, or NULL */
  const cleave_plan_t *plan;   /* or NULL */
  const cleave_backend_handle_t *cpu;
  cleave_compile_options_t compile_options; /* without what is of one backend */
  bool profile;
  bool strict;                           /* a region that its backend does not compile is an error */
  bool fallback;                         /* `cpu` computes what a backend fails in */
  uint32_t fallback_count;               /* steps that have one */
  const cleave_without_t *without;       /* while the session is made */
  const cleave_backend_handle_t *failed; /* whose device did not start or had no memory, then */
  bool imperative;                       /* nodes of regions one by one */
  uint32_t workers;                      /* of the host; 0: see cleave_session_options_t */
  cleave_backend_option_table_t options; /* of backends */
  cleave_program_cache_t *cache;         /* retained, or NULL */
  uint32_t reused_count;                 /* programs that another session had compiled */
  struct cleave_blob_store *blobs;       /* retained, or NULL */
  uint32_t loaded_count;                 /* programs that were in it */
  CLEAVE_ARRAY(cleave_target_t) targets; /* `cpu` first */
  CLEAVE_ARRAY(cleave_slot_t) slots;
  CLEAVE_ARRAY(cleave_step_t) steps;
  CLEAVE_ARRAY(cleave_block_t) blocks;
  CLEAVE_ARRAY(cleave_program_t *) programs; /* each once; a reference to each */
  CLEAVE_ARRAY(cleave_patch_t) patches;
  CLEAVE_ARRAY(const char *) notes;
  uint32_t *slot_patch; /* by root slot: first patch, or NONE */
  uint32_t input_count;
  uint32_t *input_slots; /* by graph input */
  uint32_t output_count;
  cleave_output_t *outputs; /* by graph output */
  CLEAVE_ARRAY(cleave_state_t) states;
  bool has_shared_state; /* running again would read what the last run wrote */
  unsigned char *memory; /* of the host: blocks, then workspace */
  unsigned char *output_memory;
  cleave_session_memory_t statistics;
  cleave_single_t single;
  cleave_session_lanes_t *lanes; /* NULL: steps run one after the other, on the calling thread */
  cleave_arena_t dynamic_arena;  /* of the dynamic step at work */
  void *dynamic_workspace;       /* of dynamic steps on the host; grows */
  size_t dynamic_workspace_bytes;
  uint64_t run_number;
  uint32_t dynamic_program_count;
  bool has_streams;        /* of a target */
  bool is_careful;         /* every step is waited for */
  bool has_output_work;    /* for cleave_session_finish_outputs */
  bool has_failed_streams; /* they are made anew before the next run */
  uint32_t broken;         /* target whose device failed in this run, outside of programs; 0: none */
  bool has_run;
};

/* Callers put these around work of the session's threads: see system/contention.h. */
void cleave_session_enter(const cleave_session_t *session);
void cleave_session_leave(const cleave_session_t *session);

/* ---- targets (session_targets.c) ---- */

/* The target of a backend's device, made if it is new. */
CLEAVE_STATUS cleave_session_target(cleave_session_t *session, const cleave_backend_handle_t *handle,
                                    uint32_t device, uint32_t *out_target, cleave_error_t *error);
/* The target of a region: its device by the region's attribute `device`, else by the session's options. */
CLEAVE_STATUS cleave_session_region_target(cleave_session_t *session, const cleave_plan_region_t *region,
                                           uint32_t *out_target, cleave_error_t *error);
/* Waits for all streams; what went wrong on them is nobody's any more. */
void cleave_session_drain(cleave_session_t *session);
/* Fresh streams in place of those that failed. */
CLEAVE_STATUS cleave_session_renew_streams(cleave_session_t *session, cleave_error_t *error);
void cleave_session_destroy_targets(cleave_session_t *session);

/* ---- building (session_build.c, session_copies.c) ---- */

/* Steps, slots, programs, copies, from the bound graph and the plan. */
CLEAVE_STATUS cleave_session_build(cleave_session_t *session, cleave_error_t *error);

/* Steps that copy values between places, and what streams wait for. */
CLEAVE_STATUS cleave_session_add_copies(cleave_session_t *session, cleave_error_t *error);
/* Keeps what is copied to a device on a stream until the host has waited for the stream. */
void cleave_session_extend_lifetimes(cleave_session_t *session);

CLEAVE_STATUS cleave_session_add_note(cleave_session_t *session, const char *note, cleave_error_t *error);

/* "operator 'X' (node 'n') is not supported by cpu: reason" */
cleave_status_t cleave_session_fail_node(const cleave_graph_t *graph, cleave_node_t node, const char *backend,
                                         cleave_status_t status, const cleave_message_t *message,
                                         cleave_error_t *error);

/* ---- lanes (session_lanes.c) ---- */

/* Gives each step a lane if the session is to run steps side by side, and if any can be. */
CLEAVE_STATUS cleave_session_make_lanes(cleave_session_t *session, cleave_error_t *error);
/* The steps that have ended when a step starts, as in cleave_lanes_known; NULL without lanes. */
const uint32_t *cleave_session_known(const cleave_session_t *session, uint32_t step);
uint32_t cleave_session_lane_count(const cleave_session_t *session); /* 0 without lanes */
void cleave_session_destroy_lanes(cleave_session_t *session);

/* ---- lanes at work (session_flow.c) ---- */

/* Runs all steps. What failed on a stream, or in a step that `cpu` will take over, is `late`. */
CLEAVE_STATUS cleave_session_run_lanes(cleave_session_t *session, cleave_late_t *late, cleave_error_t *error);
/* Starts the threads, once memory is planned; again after a failure. */
CLEAVE_STATUS cleave_session_start_lanes(cleave_session_t *session, cleave_error_t *error);
/* Ends the threads; the next run starts others. */
void cleave_session_stop_lanes(cleave_session_t *session);

/* ---- single steps (session_step.c) ---- */

/* "region 'r' on onednn: ..." */
cleave_status_t cleave_session_fail_step(const cleave_session_t *session, const cleave_step_t *step,
                                         cleave_status_t status, cleave_message_t *message,
                                         cleave_error_t *error);
/* Copies by a copy step, on the stream or, if it is NULL, done on return. */
CLEAVE_STATUS cleave_session_copy(const cleave_session_t *session, const cleave_step_t *step, void *stream,
                                  cleave_error_t *error);

/* ---- memory (session_memory.c) ---- */

/* Blocks, their offsets, the memory itself, and all views and patches. */
CLEAVE_STATUS cleave_session_plan_memory(cleave_session_t *session, cleave_error_t *error);

/* Copies the pointer of a USER slot into the slots and views that show its memory. */
void cleave_session_patch(cleave_session_t *session, uint32_t root);
/* Makes a block of the outputs lie in other memory. */
void cleave_session_patch_block(cleave_session_t *session, uint32_t block, void *memory);

/* ---- state (session_state.c) ---- */

/* The state that an input is, or NULL. */
cleave_state_t *cleave_session_find_state(cleave_session_t *session, uint32_t input);
/* Sets what the next run reads; it is copied. */
void cleave_session_set_state(cleave_session_t *session, cleave_state_t *state, const void *data);
/* Before a run: outputs of the last run become inputs. */
CLEAVE_STATUS cleave_session_advance(cleave_session_t *session, cleave_error_t *error);
void cleave_session_free_states(cleave_session_t *session);
/* Memory that an output is written to, as cleave_session_set_output has it, also of a state. */
CLEAVE_STATUS cleave_session_write_output(cleave_session_t *session, uint32_t index,
                                          const cleave_tensor_view_t *tensor, cleave_error_t *error);

/* ---- running ---- */

CLEAVE_STATUS cleave_session_run_dynamic(cleave_session_t *session, cleave_step_t *step,
                                         cleave_error_t *error);

/* ---- processors that are taken (session_single.c) ---- */

/* Chooses all threads or one before the steps of a run. Returns the time if processors are taken, else 0. */
uint64_t cleave_session_choose_threads(cleave_session_t *session);
/* Judges the steps of a run that began at `start` and succeeded. `repeat` runs them once more. */
void cleave_session_judge_threads(cleave_session_t *session, uint64_t start,
                                  cleave_status_t (*repeat)(cleave_session_t *session));

/* ---- backends that fail (session_fallback.c) ---- */

/* The target's library is lost, and `cpu` is not to take over: an error. */
bool cleave_session_is_lost(const cleave_session_t *session, uint32_t target);
/* `cpu` takes over from the target's backend, which has failed or is lost. */
bool cleave_session_falls_back(const cleave_session_t *session, uint32_t target);
/* Runs what a step of such a backend computes on `cpu`, from the same inputs: compiled when it is first
 * needed, with a note; `reason` is what the backend said. Of a device with streams, nothing is on them. */
CLEAVE_STATUS cleave_session_run_fallback(cleave_session_t *session, cleave_step_t *step,
                                          const cleave_message_t *reason, cleave_error_t *error);
void cleave_session_destroy_fallback(cleave_step_t *step);
/* The first part of that alone. */
CLEAVE_STATUS cleave_session_make_fallback(cleave_session_t *session, cleave_step_t *step,
                                           const cleave_message_t *reason, cleave_error_t *error);

/* ---- devices that fail (session_abandon.c) ---- */

/* Runs all steps; what failed on a stream is `late`. */
typedef cleave_status_t (*cleave_steps_fn_t)(cleave_session_t *session, cleave_late_t *late,
                                             cleave_error_t *error);
/* After steps that came to `status`, with the reason in `error`: while that is because of a device
 * (session->broken), `cpu` takes its place, and the steps run again. Returns what the last of these runs came
 * to; `error` is empty if that is CLEAVE_OK. */
CLEAVE_STATUS cleave_session_repeat_without(cleave_session_t *session, cleave_status_t status,
                                            cleave_steps_fn_t run_steps, cleave_error_t *error);

/* After the steps: adds or copies to the user's memory what steps could not write there. */
CLEAVE_STATUS cleave_session_finish_outputs(cleave_session_t *session, cleave_error_t *error);
/* Adds `bytes` of values to others of the same dtype; any alignment. */
void cleave_session_add_values(cleave_dtype_t dtype, void *to, const void *from, size_t bytes);

#endif /* CLEAVE_RUNTIME_BUILD_SESSION_INTERNAL_H */
