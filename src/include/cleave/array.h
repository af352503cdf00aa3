// SPDX-License-Identifier: Apache-2.0
/*
 * Arrays, and operators that compute with them one call at a time, without a model: for programs that look at
 * values between operators, and for trying things out.
 *
 * A call returns at once: the operator runs on a worker as soon as its inputs are there, by the dependency
 * engine of cleave/engine.h, and its outputs may be given to the next call right away. Who reads an array
 * waits for it, and gets the error of what should have made it. Types and shapes are checked during the call.
 * If the shape of an output depends on data (NonZero), the call waits for it; and a call that is 512 ahead of
 * the workers waits for them.
 *
 * Operators are those of models (src/ops/op_list.inc, and what loaded libraries bring), by the same names,
 * inputs and attributes, in the newest form of ONNX that cleave knows. One is compiled when it is called with
 * these types and attributes first, and kept. Functions may be called from any thread, but not by operations
 * of the engine.
 */
#ifndef CLEAVE_ARRAY_H
#define CLEAVE_ARRAY_H

#include "cleave/cleave.h"
#include "cleave/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Arrays live, and calls run, in one of these. */
typedef struct cleave_imperative cleave_imperative_t;

/* Numbers of one dtype in host memory, row-major without gaps. Shared by reference count. Its content is what
 * the call that made it computes, and never changes. */
typedef struct cleave_array cleave_array_t;

typedef struct cleave_imperative_options {
  size_t size;         /* sizeof(cleave_imperative_options_t) */
  const char *backend; /* that computes what it supports; `cpu` computes the rest. NULL: "cpu" */
  int32_t threads;     /* that an operator may use; 0: as for sessions */
  /* Operators that run side by side if nothing orders them; 0: 1. Each may use `threads` threads. */
  uint32_t workers;
  bool is_serial; /* every call has run when it returns: for debuggers, and if nothing runs beside it */
  const cleave_backend_option_t *backend_options; /* copied */
  uint32_t backend_option_count;
  size_t pool_bytes; /* most memory of released arrays that is kept for new ones; 0: 512 MiB */
} cleave_imperative_options_t;

/* The context is retained, and NULL is the process's own; `options` may be NULL. CLEAVE_ERROR_UNSUPPORTED:
 * there is no such backend. */
CLEAVE_MUST_USE cleave_status_t cleave_imperative_create(cleave_context_t *context,
                                                         const cleave_imperative_options_t *options,
                                                         cleave_imperative_t **out_imperative,
                                                         cleave_error_t *error);
/* Waits for all calls. Arrays are released before. NULL is a no-op. */
void cleave_imperative_destroy(cleave_imperative_t *imperative);

/* The engine that runs the calls: for counters, descriptions, bulks of small calls, and operations of your
 * own between them. */
cleave_engine_t *cleave_imperative_engine(cleave_imperative_t *imperative);

typedef struct cleave_imperative_counters {
  size_t size; /* sizeof(cleave_imperative_counters_t) */
  uint64_t calls;
  uint64_t compiled;    /* operators, for types and attributes that had not come up */
  uint64_t kept;        /* of those, and notes on them, now */
  uint64_t array_bytes; /* of arrays that live, by the blocks of memory that they take */
  uint64_t pool_bytes;  /* of released ones, kept for the next */
} cleave_imperative_counters_t;
void cleave_imperative_count(cleave_imperative_t *imperative, cleave_imperative_counters_t *out_counters);

/* Waits until all calls have run. Returns the first error that nobody was told of. */
CLEAVE_MUST_USE cleave_status_t cleave_imperative_wait(cleave_imperative_t *imperative,
                                                       cleave_error_t *error);

/* ---- arrays --------------------------------------------------------------------------------------- */

/* Copies `data`, as many bytes as the shape takes; NULL: zeros. dtype STRING is CLEAVE_ERROR_UNSUPPORTED. */
CLEAVE_MUST_USE cleave_status_t cleave_array_create(cleave_imperative_t *imperative, cleave_dtype_t dtype,
                                                    int32_t rank, const int64_t *dims, const void *data,
                                                    cleave_array_t **out_array, cleave_error_t *error);
cleave_array_t *cleave_array_retain(cleave_array_t *array);
/* Memory goes when calls that use it have run. NULL is a no-op. */
void cleave_array_release(cleave_array_t *array);

cleave_dtype_t cleave_array_dtype(const cleave_array_t *array);
int32_t cleave_array_rank(const cleave_array_t *array);
const int64_t *cleave_array_dims(
    const cleave_array_t *array);                        /* as many as its rank; live as long as it does */
int64_t cleave_array_count(const cleave_array_t *array); /* elements */
size_t cleave_array_bytes(const cleave_array_t *array);

/* Waits for the array, and says why it was not computed. *out_data is its content, for reading, as long as
 * the array lives. */
CLEAVE_MUST_USE cleave_status_t cleave_array_data(cleave_array_t *array, const void **out_data,
                                                  cleave_error_t *error);

/* Engine operations of your own read this variable to run after the array was computed. */
cleave_variable_t *cleave_array_variable(cleave_array_t *array);

/* ---- calls ---------------------------------------------------------------------------------------- */

/* Calls an operator: "Conv", or "my.company.Gemm" of a loaded library. Inputs are in the order of its schema;
 * NULL is one that is left out. Attributes that are left out have their defaults. `outputs` gets
 * `output_count` new arrays, to be released by the caller; all NULL on failure. Errors say what is wrong with
 * which input or attribute: CLEAVE_ERROR_INVALID_ARGUMENT, CLEAVE_ERROR_SHAPE; CLEAVE_ERROR_UNSUPPORTED:
 * nothing computes this operator with these types; and the errors of earlier calls if this one has to wait
 * for their values. */
CLEAVE_MUST_USE cleave_status_t cleave_array_call(cleave_imperative_t *imperative, const char *op,
                                                  cleave_array_t *const *inputs, uint32_t input_count,
                                                  const cleave_attribute_view_t *attributes,
                                                  uint32_t attribute_count, cleave_array_t **outputs,
                                                  uint32_t output_count, cleave_error_t *error);

/* ---- gradients ------------------------------------------------------------------------------------ */

/* The calls of a thread while they are noted, in order, with their arrays, which live until the record is
 * destroyed. Records of a thread may be nested; each gets the calls of those inside of it. */
typedef struct cleave_record cleave_record_t;

/* From here on the calls of this thread are noted. */
CLEAVE_MUST_USE cleave_status_t cleave_record_begin(cleave_imperative_t *imperative,
                                                    cleave_record_t **out_record, cleave_error_t *error);
/* By the same thread: no more are noted. */
void cleave_record_end(cleave_record_t *record);
/* Ends it if that was not done. Arrays of the environment are released before it; so are records. NULL is a
 * no-op. */
void cleave_record_destroy(cleave_record_t *record);

/* Between the two no record of this thread notes its calls: gradients do not pass them. May be nested. */
void cleave_record_pause(void);
void cleave_record_resume(void);

typedef struct cleave_record_request {
  size_t size;                    /* sizeof(cleave_record_request_t) */
  cleave_array_t *const *results; /* that are differentiated, of floating-point numbers */
  /* By result: what its elements are multiplied by before all are summed; of its dtype and shape. NULL, the
   * list or one of it: ones. */
  cleave_array_t *const *heads;
  uint32_t result_count;
  cleave_array_t *const *parameters; /* that are differentiated by, of floating-point numbers */
  uint32_t parameter_count;
  const cleave_rule_source_t *rules; /* that partition the graph of the gradients; of none, the backend gets
                                        what it supports */
  size_t rule_count;
} cleave_record_request_t;

/* The gradient of the sum of the results by each parameter, of the parameter's dtype and shape; zeros if no
 * result depends on it through the calls that were noted. `gradients` gets new arrays; all NULL on failure.
 * They are computed like the results of other calls, by one graph that is compiled once for the same calls,
 * types and rules; it reads what the noted calls computed, and computes none of it again. As long as records
 * of this thread are open, this is a call that they note, so that a gradient can be differentiated. What is
 * drawn at random is like an array from elsewhere. CLEAVE_ERROR_UNSUPPORTED: an operator on the way has no
 * gradient. */
CLEAVE_MUST_USE cleave_status_t cleave_record_gradient(cleave_record_t *record,
                                                       const cleave_record_request_t *request,
                                                       cleave_array_t **gradients, cleave_error_t *error);

#ifdef __cplusplus
}
#endif

#endif /* CLEAVE_ARRAY_H */
