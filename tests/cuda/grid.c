// SPDX-License-Identifier: Apache-2.0
// Running grids. A fibre runs one thread of a block after the other until one of them waits; what waits keeps
// its fibre, and another one goes on with the rest. So a kernel without barriers needs one.
#define _GNU_SOURCE
#include "grid.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

enum { STACK_BYTES = 1 << 18, WARP = 32 };

typedef struct size3 {
  unsigned x, y, z;
} size3_t;

/* The same as in prelude.hpp. */
typedef struct grid_thread {
  size3_t thread, block, block_size, grid_size;
  _Alignas(16) unsigned char slot[32];
} grid_thread_t;

typedef struct grid_services {
  grid_thread_t *(*now)(void);
  void (*barrier)(void);
  void (*meet)(unsigned mask);
  const unsigned char *(*slot_of)(unsigned lane);
} grid_services_t;

struct grid_kernel {
  char name[128];
  void (*call)(void **arguments);
  unsigned long (*parameter)(unsigned index);
  grid_kernel_t *next;
};

struct grid_module {
  void *library;
  grid_kernel_t *kernels;
};

typedef enum state { NEW, RUNS, AT_BARRIER, AT_MEETING, DONE } state_t;

#if defined(__x86_64__)
typedef void *context_t; /* where its stack ends, with its registers on it */
#else
typedef ucontext_t context_t;
#endif

typedef struct fibre {
  context_t context;
  void *stack;
  void *fake_stack; /* AddressSanitizer's */
  void *tsan;
} fibre_t;

typedef struct runner {
  const grid_kernel_t *kernel;
  void **arguments;
  unsigned count; /* threads of the block */
  unsigned next;  /* the first one that is new */
  unsigned now;
  grid_thread_t threads[GRID_MAX_THREADS];
  state_t states[GRID_MAX_THREADS];
  unsigned masks[GRID_MAX_THREADS];  /* of whom they wait for */
  fibre_t *fibres[GRID_MAX_THREADS]; /* of those that wait */
  fibre_t *running;
  fibre_t *idle[GRID_MAX_THREADS];
  unsigned idle_count;
  fibre_t home;
  const void *home_stack;
  size_t home_bytes;
} runner_t;

static runner_t *runner;

/* ---- fibres ---- */

static void run_threads(void);

#if defined(__x86_64__)
/* swapcontext makes a system call each time, for a mask of signals that is always the same: kernels with
 * barriers would spend nine tenths of their time on it. This keeps the registers that a call has to keep, and
 * no more. */
void grid_switch_stacks(context_t *from, context_t to) __attribute__((visibility("hidden")));
__asm__(
    ".text\n"
    ".type grid_switch_stacks, @function\n"
    "grid_switch_stacks:\n"
    "  pushq %rbp\n"
    "  pushq %rbx\n"
    "  pushq %r12\n"
    "  pushq %r13\n"
    "  pushq %r14\n"
    "  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n"
    "  popq %r14\n"
    "  popq %r13\n"
    "  popq %r12\n"
    "  popq %rbx\n"
    "  popq %rbp\n"
    "  ret\n"
    ".size grid_switch_stacks, . - grid_switch_stacks\n");

static void switch_contexts(context_t *from, context_t *to) {
  grid_switch_stacks(from, *to);
}

/* The registers, all zero, then where they return to, then the frame that calls nobody. */
static void make_context(context_t *context, void *stack) {
  enum { REGISTERS = 6 };
  uintptr_t *top = (uintptr_t *)((unsigned char *)stack + STACK_BYTES);
  uintptr_t *at = top - 2 - REGISTERS;
  memset(at, 0, (size_t)(top - at) * sizeof *at);
  at[REGISTERS] = (uintptr_t)run_threads;
  *context = at;
}
#else
static void switch_contexts(context_t *from, context_t *to) {
  swapcontext(from, to);
}

static void make_context(context_t *context, void *stack) {
  getcontext(context);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = STACK_BYTES;
  context->uc_link = NULL;
  makecontext(context, run_threads, 0);
}
#endif

static void switch_to(fibre_t *from, fibre_t *to, bool ends) {
  (void)ends;
#if defined(__SANITIZE_ADDRESS__)
  const void *bottom = to == &runner->home ? runner->home_stack : to->stack;
  size_t bytes = to == &runner->home ? runner->home_bytes : STACK_BYTES;
  __sanitizer_start_switch_fiber(ends ? NULL : &from->fake_stack, bottom, bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to->tsan, 0);
#endif
  switch_contexts(&from->context, &to->context);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
#endif
}

static void run_threads(void) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(NULL, &runner->home_stack, &runner->home_bytes);
#endif
  for (;;) {
    fibre_t *self = runner->running;
    while (runner->next < runner->count) {
      unsigned own = runner->next++;
      runner->now = own;
      runner->states[own] = RUNS;
      runner->kernel->call(runner->arguments);
      runner->states[own] = DONE;
      /* It may have waited; then it is not for this fibre to begin others. */
      if (runner->fibres[own] != NULL) {
        runner->fibres[own] = NULL;
        break;
      }
    }
    runner->idle[runner->idle_count++] = self;
    switch_to(self, &runner->home, false);
  }
}

static fibre_t *take_fibre(void) {
  if (runner->idle_count > 0) {
    return runner->idle[--runner->idle_count];
  }
  fibre_t *fibre = calloc(1, sizeof *fibre);
  void *stack = fibre != NULL ? malloc(STACK_BYTES) : NULL;
  if (stack == NULL) {
    fprintf(stderr, "grid: no memory for the stack of a thread\n");
    abort();
  }
  fibre->stack = stack;
  make_context(&fibre->context, stack);
#if defined(__SANITIZE_THREAD__)
  fibre->tsan = __tsan_create_fiber(0);
#endif
  return fibre;
}

static void free_fibre(fibre_t *fibre) {
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(fibre->tsan);
#endif
  free(fibre->stack);
  free(fibre);
}

/* ---- what kernels ask for ---- */

static grid_thread_t *now(void) {
  return &runner->threads[runner->now];
}

static void wait_as(state_t state, unsigned mask) {
  unsigned own = runner->now;
  fibre_t *self = runner->running;
  runner->states[own] = state;
  runner->masks[own] = mask;
  runner->fibres[own] = self;
  switch_to(self, &runner->home, false);
  runner->now = own;
}

static void barrier(void) {
  wait_as(AT_BARRIER, 0);
}

static void meet(unsigned mask) {
  wait_as(AT_MEETING, mask);
}

static const unsigned char *slot_of(unsigned lane) {
  unsigned index = runner->now / WARP * WARP + lane % WARP;
  return runner->threads[index < runner->count ? index : runner->now].slot;
}

static const grid_services_t services = {now, barrier, meet, slot_of};

/* ---- blocks ---- */

/* Everyone of its warp that the thread waits for is there, too. */
static bool has_met(unsigned thread) {
  unsigned first = thread / WARP * WARP;
  for (unsigned lane = 0; lane < WARP && first + lane < runner->count; lane++) {
    bool is_there =
        runner->states[first + lane] == AT_MEETING && runner->masks[first + lane] == runner->masks[thread];
    if ((runner->masks[thread] >> lane & 1u) != 0 && !is_there) {
      return false;
    }
  }
  return true;
}

static void run_fibre(fibre_t *fibre) {
  runner->running = fibre;
  switch_to(&runner->home, fibre, false);
}

static void release(unsigned thread) {
  runner->states[thread] = RUNS;
}

/* Lets go of those whose wait is over; false: nobody's is. */
static bool release_waiting(void) {
  bool at_barrier = true;
  bool is_any = false;
  for (unsigned t = 0; t < runner->count; t++) {
    at_barrier = at_barrier && (runner->states[t] == AT_BARRIER || runner->states[t] == DONE);
  }
  for (unsigned t = 0; t < runner->count; t++) {
    if (at_barrier && runner->states[t] == AT_BARRIER) {
      release(t);
      is_any = true;
    }
  }
  for (unsigned first = 0; first < runner->count; first += WARP) {
    for (unsigned t = first; t < first + WARP && t < runner->count; t++) {
      if (runner->states[t] != AT_MEETING || !has_met(t)) {
        continue;
      }
      unsigned mask = runner->masks[t];
      for (unsigned lane = 0; lane < WARP && first + lane < runner->count; lane++) {
        if ((mask >> lane & 1u) != 0) {
          release(first + lane);
        }
      }
      is_any = true;
    }
  }
  return is_any;
}

static bool run_block(void) {
  runner->next = 0;
  for (unsigned t = 0; t < runner->count; t++) {
    runner->states[t] = NEW;
    runner->fibres[t] = NULL;
  }
  for (;;) {
    while (runner->next < runner->count) {
      run_fibre(take_fibre());
    }
    bool is_done = true;
    for (unsigned t = 0; t < runner->count; t++) {
      if (runner->states[t] == RUNS) {
        run_fibre(runner->fibres[t]);
      }
      is_done = is_done && runner->states[t] == DONE;
    }
    if (is_done) {
      return true;
    }
    if (!release_waiting()) {
      return false;
    }
  }
}

int grid_run(const grid_kernel_t *kernel, const uint32_t grid[3], const uint32_t block[3], void **arguments,
             char message[GRID_MESSAGE_BYTES]) {
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
  if (threads == 0 || block[0] > GRID_MAX_THREADS || block[1] > GRID_MAX_THREADS ||
      threads > GRID_MAX_THREADS || grid[0] == 0 || grid[1] == 0 || grid[2] == 0) {
    snprintf(message, GRID_MESSAGE_BYTES, "a grid of %u x %u x %u blocks of %u x %u x %u threads", grid[0],
             grid[1], grid[2], block[0], block[1], block[2]);
    return -1;
  }
  runner = calloc(1, sizeof *runner);
  if (runner == NULL) {
    snprintf(message, GRID_MESSAGE_BYTES, "no memory for a grid");
    return -1;
  }
#if defined(__SANITIZE_THREAD__)
  runner->home.tsan = __tsan_get_current_fiber();
#endif
  runner->kernel = kernel;
  runner->arguments = arguments;
  runner->count = (unsigned)threads;
  bool is_sound = true;
  uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
  for (uint64_t b = 0; is_sound && b < blocks; b++) {
    for (unsigned t = 0; t < runner->count; t++) {
      runner->threads[t] =
          (grid_thread_t){.thread = {t % block[0], t / block[0] % block[1], t / block[0] / block[1]},
                          .block = {(unsigned)(b % grid[0]), (unsigned)(b / grid[0] % grid[1]),
                                    (unsigned)(b / grid[0] / grid[1])},
                          .block_size = {block[0], block[1], block[2]},
                          .grid_size = {grid[0], grid[1], grid[2]}};
    }
    is_sound = run_block();
  }
  if (!is_sound) {
    snprintf(message, GRID_MESSAGE_BYTES, "threads of a block of '%s' wait for each other for ever",
             kernel->name);
    for (unsigned t = 0; t < runner->count; t++) {
      if (runner->states[t] == AT_BARRIER || runner->states[t] == AT_MEETING) {
        runner->idle[runner->idle_count++] = runner->fibres[t];
      }
    }
  }
  while (runner->idle_count > 0) {
    free_fibre(runner->idle[--runner->idle_count]);
  }
  free(runner);
  runner = NULL;
  return is_sound ? 0 : -1;
}

/* ---- modules ---- */

size_t grid_image_bytes(const void *image) {
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) {
    return 0;
  }
  return (size_t)header.e_shoff +
         (size_t)header.e_shnum * header.e_shentsize; /* the sections' table comes last */
}

/* Through a file of its own name: the loader takes files of one name for one library. */
static void *open_image(const void *image, size_t size, char *message) {
  char path[] = "/tmp/cleave_grid_XXXXXX";
  int file = mkstemp(path);
  size_t done = 0;
  while (file >= 0 && done < size) {
    ssize_t count = write(file, (const char *)image + done, size - done);
    if (count <= 0) {
      break;
    }
    done += (size_t)count;
  }
  void *library = done == size ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) {
    const char *reason = done == size ? dlerror() : "it cannot be written to a file";
    snprintf(message, GRID_MESSAGE_BYTES, "%s", reason);
  }
  if (file >= 0) {
    unlink(path);
    close(file);
  }
  return library;
}

grid_module_t *grid_module_load(const void *image, char message[GRID_MESSAGE_BYTES]) {
  size_t size = grid_image_bytes(image);
  grid_module_t *module = size > 0 ? calloc(1, sizeof *module) : NULL;
  if (module == NULL) {
    snprintf(message, GRID_MESSAGE_BYTES, "the image is none");
    return NULL;
  }
  module->library = open_image(image, size, message);
  const grid_services_t **bound = module->library != NULL ? dlsym(module->library, "grid_bound") : NULL;
  if (bound == NULL) {
    if (module->library != NULL) {
      snprintf(message, GRID_MESSAGE_BYTES, "the image has no kernels");
      dlclose(module->library);
    }
    free(module);
    return NULL;
  }
  *bound = &services;
  return module;
}

void grid_module_unload(grid_module_t *module) {
  if (module == NULL) {
    return;
  }
  while (module->kernels != NULL) {
    grid_kernel_t *next = module->kernels->next;
    free(module->kernels);
    module->kernels = next;
  }
  dlclose(module->library);
  free(module);
}

const grid_kernel_t *grid_module_kernel(grid_module_t *module, const char *name) {
  char symbol[160];
  char sizes[160];
  for (grid_kernel_t *kernel = module->kernels; kernel != NULL; kernel = kernel->next) {
    if (strcmp(kernel->name, name) == 0) {
      return kernel;
    }
  }
  snprintf(symbol, sizeof symbol, "grid_call_%s", name);
  snprintf(sizes, sizeof sizes, "grid_parameter_%s", name);
  void *found = dlsym(module->library, symbol);
  void *parameter = dlsym(module->library, sizes);
  grid_kernel_t *kernel = found != NULL && parameter != NULL && strlen(name) < sizeof kernel->name
                              ? calloc(1, sizeof *kernel)
                              : NULL;
  if (kernel == NULL) {
    return NULL;
  }
  memcpy(&kernel->call, &found, sizeof found);
  memcpy(&kernel->parameter, &parameter, sizeof parameter);
  snprintf(kernel->name, sizeof kernel->name, "%s", name);
  kernel->next = module->kernels;
  module->kernels = kernel;
  return kernel;
}

size_t grid_kernel_parameter(const grid_kernel_t *kernel, uint32_t index) {
  return kernel->parameter(index);
}
