// SPDX-License-Identifier: Apache-2.0
// libgomp reads how long to spin from the environment before main; an embedding program has no way to change
// it later. But libgomp spins for some 100 rounds only, instead of 300,000, while it manages more threads
// than there are processors. So, while processors are taken, the watching thread keeps a team of its own that
// sleeps. Nothing here changes what is computed.
#include "system/contention.h"

#ifdef _OPENMP
#include <fcntl.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "system/clock.h"
#include "system/processors.h"

enum { MAX_THREADS = 256, TICK_MS = 10, TICKS_UNTIL_PARKED = 20 };

#define MS UINT64_C(1000000)

/* Shares of the time of runs that a thread waited for a processor, in percent, over about four looks. A
 * process that has the same right to the processor makes it about 80 while threads spin, and 30 to 50 while
 * they sleep. */
enum { TAKEN_PERCENT = 30, CALM_PERCENT = 20, LOOKS = 4 };

/* How long to be calm before threads spin again. A return that was wrong doubles it. */
static const uint64_t least_patience = 50 * MS;
static const uint64_t most_patience = 2000 * MS;
/* While runs use one thread, which finds a free processor and never waits: its time and that in which
 * processors had nothing to do must be about as much as all threads could take. If the kernel does not tell,
 * patience is longer. */
enum { FREE_PERCENT = 85 };
static const uint64_t alone_patience = 100 * MS;
static const uint64_t blind_patience = 1000 * MS;

typedef struct member {
  pid_t id;
  uint64_t waited; /* ns, when it was looked at last */
} member_t;

static struct {
  pthread_mutex_t lifetime; /* of users and of the thread; taken before `lock` */
  pthread_mutex_t lock;     /* of the members and of sleep */
  pthread_cond_t wake;
  pthread_t thread;
  pid_t process; /* that the thread is of: a fork has none */
  uint32_t users;
  atomic_bool is_running;
  bool ends;
  int processors;
  int team; /* largest that runs asked for */
  member_t members[MAX_THREADS];
  uint32_t member_count;
  atomic_uint generation; /* grows when members are missing */
  atomic_bool is_parked;
  atomic_bool is_taken;
  atomic_bool is_alone; /* a run since the last look used one thread */
  atomic_uint active;
  _Atomic uint64_t since; /* of the runs that are active */
  _Atomic uint64_t busy;  /* ns of runs that have ended */
} watch = {.lifetime = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local uint32_t joined_generation;
static _Thread_local int32_t joined_threads;

/* ---- the watching thread ---- */

typedef struct judge {
  uint64_t busy;       /* at the last look */
  uint64_t window;     /* ns of runs of the last looks; those long ago count less */
  uint64_t waited;     /* meanwhile */
  uint64_t calm;       /* ns of runs */
  uint64_t calm_since; /* on the clock; 0: not calm */
  uint64_t idle;       /* of processors, then; 0: it could not be read */
  uint64_t patience;
  uint64_t since; /* ns of runs since threads spin again */
} judge_t;

/* Time in ns that a thread waited for a processor: the second number. */
static bool read_waited(pid_t id, uint64_t *out) {
  char path[64];
  char text[128];
  (void)snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", (long)id);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  ssize_t length = read(file, text, sizeof text - 1);
  (void)close(file);
  if (length <= 0) {
    return false;
  }
  text[length] = '\0';
  char *end = NULL;
  (void)strtoull(text, &end, 10);
  char *second = end;
  *out = strtoull(second, &end, 10);
  return end != second;
}

/* The longest that one thread waited since the last look. Threads that ended are left out from now on. */
static uint64_t look(void) {
  uint64_t most = 0;
  uint32_t kept = 0;
  for (uint32_t k = 0; k < watch.member_count; k++) {
    member_t member = watch.members[k];
    uint64_t waited;
    if (!read_waited(member.id, &waited)) {
      continue;
    }
    most = waited - member.waited > most ? waited - member.waited : most;
    member.waited = waited;
    watch.members[kept++] = member;
  }
  if (kept < watch.member_count) {
    watch.member_count = kept;
    atomic_fetch_add(&watch.generation, 1);
  }
  return most;
}

/* OpenMP forms a team once; its threads sleep until the team is dissolved. */
static void keep_team(void) {
  int spare = watch.processors - watch.team;
#pragma omp parallel num_threads(spare > 0 ? spare + 2 : 2)
  (void)sched_yield(); /* the compiler drops a team that does nothing */
}

static void dissolve_team(void) {
  (void)omp_pause_resource(omp_pause_soft, omp_get_initial_device());
}

static void be_restless(judge_t *judge) {
  judge->calm = 0;
  judge->calm_since = 0;
}

static void take(judge_t *judge) {
  uint64_t longer = judge->patience * 2 < most_patience ? judge->patience * 2 : most_patience;
  judge->patience = judge->since > most_patience ? least_patience : longer;
  be_restless(judge);
  keep_team();
  atomic_store(&watch.is_taken, true);
}

static void grow_calm(judge_t *judge, uint64_t window) {
  int32_t processors;
  if (judge->waited * 100 >= judge->window * CALM_PERCENT) {
    be_restless(judge);
  } else if (judge->calm_since == 0) {
    judge->calm_since = cleave_clock_now();
    (void)cleave_processor_idle("", &judge->idle, &processors);
  } else {
    judge->calm += window;
  }
}

/* Would several threads be as calm as the one that ran alone? Only asked after long enough a calm. */
static bool may_return(judge_t *judge) {
  uint64_t idle;
  int32_t processors;
  uint64_t wall = cleave_clock_now() - judge->calm_since;
  if (!atomic_load(&watch.is_alone)) {
    return true;
  }
  if (judge->idle == 0 || !cleave_processor_idle("", &idle, &processors) || processors < watch.team) {
    return judge->calm > blind_patience;
  }
  if (wall < alone_patience) {
    return false;
  }
  bool is_free = (judge->calm + idle - judge->idle) * 100 > wall * (uint64_t)watch.team * FREE_PERCENT;
  if (!is_free) {
    be_restless(judge);
  }
  atomic_store(&watch.is_alone, false);
  return is_free;
}

static void judge(judge_t *judge) {
  uint64_t busy = atomic_load(&watch.busy);
  if (atomic_load(&watch.active) > 0) {
    busy += cleave_clock_now() - atomic_load(&watch.since);
  }
  uint64_t window = busy > judge->busy ? busy - judge->busy : 0;
  if (window < TICK_MS * MS / 2) {
    return;
  }
  judge->busy = busy;
  judge->window += window - judge->window / LOOKS;
  judge->waited += look() - judge->waited / LOOKS;
  if (!atomic_load(&watch.is_taken)) {
    judge->since += window;
    if (judge->waited * 100 > judge->window * TAKEN_PERCENT) {
      take(judge);
    }
    return;
  }
  grow_calm(judge, window);
  if (judge->calm > judge->patience && may_return(judge)) {
    atomic_store(&watch.is_taken, false);
    dissolve_team();
    judge->since = 0;
  }
}

static void *watch_runs(void *unused) {
  judge_t state = {.window = TICK_MS * MS * LOOKS / 2, .since = most_patience + 1};
  uint32_t quiet_ticks = 0;
  (void)pthread_mutex_lock(&watch.lock);
  while (!watch.ends) {
    if (quiet_ticks >= TICKS_UNTIL_PARKED) {
      atomic_store(&watch.is_parked, true);
      if (atomic_load(&watch.active) == 0) {
        (void)pthread_cond_wait(&watch.wake, &watch.lock);
      }
      atomic_store(&watch.is_parked, false);
      quiet_ticks = 0;
      continue;
    }
    uint64_t before = state.busy;
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += TICK_MS * (long)MS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&watch.wake, &watch.lock, &until);
    judge(&state);
    quiet_ticks = state.busy == before ? quiet_ticks + 1 : 0;
  }
  if (atomic_exchange(&watch.is_taken, false)) {
    dissolve_team();
  }
  (void)pthread_mutex_unlock(&watch.lock);
  return unused;
}

/* ---- users ---- */

static bool is_set(const char *name) {
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0';
}

/* Signals of the process are not for this thread. */
static void start(void) {
  sigset_t all;
  sigset_t before;
  pthread_condattr_t attributes;
  (void)pthread_condattr_init(&attributes);
  (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&watch.wake, &attributes);
  (void)pthread_condattr_destroy(&attributes);
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  watch.ends = false;
  watch.process = getpid();
  watch.member_count = 0;
  watch.team = 0;
  atomic_fetch_add(&watch.generation, 1);
  int processors = omp_get_num_procs();
  watch.processors = processors > watch.processors ? processors : watch.processors;
  watch.is_running = pthread_create(&watch.thread, NULL, watch_runs, NULL) == 0;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void cleave_contention_retain(void) {
  (void)pthread_mutex_lock(&watch.lifetime);
  if (watch.users++ == 0 && !is_set("OMP_WAIT_POLICY") && !is_set("GOMP_SPINCOUNT")) {
    start();
  }
  (void)pthread_mutex_unlock(&watch.lifetime);
}

void cleave_contention_release(void) {
  (void)pthread_mutex_lock(&watch.lifetime);
  if (--watch.users == 0 && atomic_exchange(&watch.is_running, false) && watch.process == getpid()) {
    (void)pthread_mutex_lock(&watch.lock);
    watch.ends = true;
    (void)pthread_cond_signal(&watch.wake);
    (void)pthread_mutex_unlock(&watch.lock);
    (void)pthread_join(watch.thread, NULL);
    (void)pthread_cond_destroy(&watch.wake);
  }
  (void)pthread_mutex_unlock(&watch.lifetime);
}

static void add_member(pid_t id) {
  for (uint32_t k = 0; k < watch.member_count; k++) {
    if (watch.members[k].id == id) {
      return;
    }
  }
  member_t *member = &watch.members[watch.member_count];
  if (watch.member_count < MAX_THREADS && read_waited(id, &member->waited)) {
    member->id = id;
    watch.member_count++;
  }
}

/* OpenMP has threads for each thread that asks it: those of the caller are members from now on. */
static void join_members(int32_t threads) {
  pid_t ids[MAX_THREADS] = {0};
  joined_generation = atomic_load(&watch.generation);
  joined_threads = threads;
#pragma omp parallel num_threads(threads)
  {
    int k = omp_get_thread_num();
    if (k < MAX_THREADS) {
      ids[k] = (pid_t)syscall(SYS_gettid);
    }
  }
  (void)pthread_mutex_lock(&watch.lock);
  watch.team = threads > watch.team ? threads : watch.team;
  for (int k = 0; k < MAX_THREADS && ids[k] != 0; k++) {
    add_member(ids[k]);
  }
  (void)pthread_mutex_unlock(&watch.lock);
}

void cleave_contention_enter(int32_t threads) {
  if (atomic_load(&watch.is_running) &&
      (joined_generation != atomic_load(&watch.generation) || joined_threads < threads)) {
    join_members(threads);
  }
  if (atomic_fetch_add(&watch.active, 1) == 0) {
    atomic_store(&watch.since, cleave_clock_now());
  }
  if (atomic_load(&watch.is_parked)) {
    (void)pthread_mutex_lock(&watch.lock);
    (void)pthread_cond_signal(&watch.wake);
    (void)pthread_mutex_unlock(&watch.lock);
  }
}

void cleave_contention_leave(void) {
  uint64_t since = atomic_load(&watch.since);
  if (atomic_fetch_sub(&watch.active, 1) == 1) {
    atomic_fetch_add(&watch.busy, cleave_clock_now() - since);
  }
}

void cleave_contention_run_alone(void) {
  atomic_store_explicit(&watch.is_alone, true, memory_order_relaxed);
}

bool cleave_contention_found(void) {
  return atomic_load_explicit(&watch.is_taken, memory_order_relaxed);
}

#else

void cleave_contention_run_alone(void) {
}

void cleave_contention_retain(void) {
}

void cleave_contention_release(void) {
}

void cleave_contention_enter(int32_t threads) {
  (void)threads;
}

void cleave_contention_leave(void) {
}

bool cleave_contention_found(void) {
  return false;
}

#endif
