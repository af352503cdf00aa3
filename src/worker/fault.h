// SPDX-License-Identifier: Apache-2.0
/* When the library crashes: where it was, written into memory that the parent reads. */
#ifndef CLEAVE_WORKER_FAULT_H
#define CLEAVE_WORKER_FAULT_H

#include "backend/process/worker_protocol.h"

/* A range of memory that faults are looked up in. */
typedef struct worker_range {
  const unsigned char *guard; /* memory that cannot be touched begins here */
  const unsigned char *data;  /* the buffer */
  size_t bytes;
  const unsigned char *end; /* of the memory behind it that cannot be touched */
  cleave_fault_place_t place;
  uint32_t index;
} worker_range_t;

/* Handlers for crashes, on a stack of their own; those that were there before (a sanitizer's) go on. */
void worker_fault_install(cleave_fault_record_t *record);

/* The ranges of the program that runs; valid until they are replaced. */
void worker_fault_watch(const worker_range_t *ranges, uint32_t count);

#endif /* CLEAVE_WORKER_FAULT_H */
