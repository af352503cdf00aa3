// SPDX-License-Identifier: Apache-2.0
/* Counts and sizes of what a session needs. */
#ifndef CLEAVE_RUNTIME_BUILD_STATISTICS_H
#define CLEAVE_RUNTIME_BUILD_STATISTICS_H

#include <stddef.h>

/* Memory, in bytes. */
typedef struct cleave_session_memory {
  size_t values_bytes;     /* planned memory of all intermediate values */
  size_t unshared_bytes;   /* what they would need without sharing */
  size_t workspace_bytes;  /* scratch memory of programs, shared */
  size_t outputs_bytes;    /* buffers of graph outputs */
  size_t persistent_bytes; /* held by programs: packed weights, tables */
  size_t dynamic_bytes;    /* memory of values with shapes known only at run time, so far */
} cleave_session_memory_t;

/* Memory of a device with memory of its own, in bytes, and what a run copies. */
typedef struct cleave_session_device {
  const char *name;       /* "mirror:0" */
  size_t values_bytes;    /* planned memory of all values that lie there */
  size_t unshared_bytes;  /* what they would need without sharing */
  size_t workspace_bytes; /* scratch memory of programs, shared */
  size_t constants_bytes; /* constants that single operators read */
  size_t dynamic_bytes;   /* of steps with shapes known only at run time, so far */
  size_t copied_to_bytes; /* by the copy steps of a run; those of such steps are not counted */
  size_t copied_from_bytes;
} cleave_session_device_t;

#endif /* CLEAVE_RUNTIME_BUILD_STATISTICS_H */
