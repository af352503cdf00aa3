// SPDX-License-Identifier: Apache-2.0
// A handler that only reads tables made before and writes a record; then the crash takes its course.
#define _GNU_SOURCE  // REG_ERR
#include "worker/worker.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

enum { SIGNAL_COUNT = sizeof SIGNALS / sizeof SIGNALS[0], STACK_BYTES = 64 << 10 };

static volatile cleave_fault_record_t *record;
static const worker_range_t *volatile ranges;
static volatile uint32_t range_count;
static struct sigaction before[SIGNAL_COUNT];
static _Alignas(64) unsigned char stack[STACK_BYTES];
static atomic_flag is_taken = ATOMIC_FLAG_INIT;

static uint32_t access_of(int number, const void *context) {
#if defined(__x86_64__)
  const ucontext_t *machine = context;
  if (number == SIGSEGV && context != NULL) {
    return machine->uc_mcontext.gregs[REG_ERR] & 2 ? CLEAVE_ACCESS_WRITE : CLEAVE_ACCESS_READ;
  }
#endif
  (void)number;
  (void)context;
  return CLEAVE_ACCESS_UNKNOWN;
}

static void find_place(const unsigned char *address) {
  uint32_t count = range_count;
  for (uint32_t k = 0; k < count; k++) {
    const worker_range_t *range = &ranges[k];
    if (address < range->guard || address >= range->end) {
      continue;
    }
    const unsigned char *end = range->data + range->bytes;
    record->place = (uint32_t)range->place;
    record->index = range->index;
    record->side = address < range->data ? CLEAVE_SIDE_BEFORE
                   : address >= end      ? CLEAVE_SIDE_BEHIND
                                         : CLEAVE_SIDE_INSIDE;
    record->distance = address < range->data ? (uint64_t)(range->data - address)
                       : address >= end      ? (uint64_t)(address - end)
                                             : 0;
    return;
  }
}

static void handle(int number, siginfo_t *info, void *context) {
  if (!atomic_flag_test_and_set(&is_taken)) {
    bool has_address = number == SIGSEGV || number == SIGBUS;
    record->address = has_address ? (uint64_t)(uintptr_t)info->si_addr : 0;
    record->access = access_of(number, context);
    if (has_address) {
      find_place(info->si_addr);
    }
    record->signal = (uint32_t)number;
  }
  for (int k = 0; k < SIGNAL_COUNT; k++) {
    if (SIGNALS[k] == number) {
      (void)sigaction(number, &before[k], NULL);
    }
  }
  if (info->si_code <= 0 || number == SIGABRT) {
    (void)raise(number); /* sent, not caused: it would not come again */
  }
}

void worker_fault_install(cleave_fault_record_t *shared) {
  record = shared;
  stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
  (void)sigaltstack(&own, NULL);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  (void)sigemptyset(&action.sa_mask);
  for (int k = 0; k < SIGNAL_COUNT; k++) {
    (void)sigaction(SIGNALS[k], &action, &before[k]);
  }
}

void worker_fault_watch(const worker_range_t *watched, uint32_t count) {
  range_count = 0;
  ranges = watched;
  range_count = count;
}
