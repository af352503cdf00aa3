// SPDX-License-Identifier: Apache-2.0
// Streams, events and graphs. A stream is a list of work that nobody has waited for yet.
#include <stdlib.h>

#include "stand_in.h"

/* Shared by the streams and graphs that hold it. */
typedef struct work {
  stand_in_work_t run;
  void *context;
  unsigned users;
} work_t;

typedef struct item {
  work_t *work;       /* NULL: waits for another stream */
  cuda_stream_t wait; /* until this many of its items are done */
  uint64_t place;
  cuda_event_t event; /* or marks an event as reached */
  struct item *next;
} item_t;

struct CUgraph_st {
  work_t **works;
  size_t count;
};

struct CUgraphExec_st {
  struct CUgraph_st graph;
  int32_t device;
};

struct CUstream_st {
  int32_t device;
  item_t *first;
  item_t *last;
  uint64_t queued;
  uint64_t done;
  cuda_graph_t captured; /* while it captures */
  bool is_draining;
  struct CUstream_st *next;
};

struct CUevent_st {
  cuda_stream_t stream; /* NULL: never recorded */
  uint64_t place;
  double time;
};

static cuda_stream_t streams;
static double clock_now; /* milliseconds */

void stand_in_spend(double milliseconds) {
  clock_now += milliseconds;
}

static bool is_stream(cuda_stream_t stream) {
  cuda_stream_t at = streams;
  while (at != NULL && at != stream) {
    at = at->next;
  }
  return at != NULL;
}

int32_t stand_in_stream_device(cuda_stream_t stream) {
  return is_stream(stream) ? stream->device : -1;
}

bool stand_in_is_capturing(cuda_stream_t stream) {
  return is_stream(stream) && stream->captured != NULL;
}

static void release(work_t *work) {
  if (work != NULL && --work->users == 0) {
    free(work->context);
    free(work);
  }
}

/* ---- putting work on streams ---- */

static int32_t append(cuda_stream_t stream, item_t item) {
  item_t *own = malloc(sizeof *own);
  if (own == NULL) {
    return CUDA_OUT_OF_MEMORY;
  }
  *own = item;
  own->next = NULL;
  if (stream->last != NULL) {
    stream->last->next = own;
  } else {
    stream->first = own;
  }
  stream->last = own;
  stream->queued++;
  return CUDA_SUCCESS_;
}

static int32_t capture(cuda_graph_t graph, work_t *work) {
  work_t **works = realloc(graph->works, (graph->count + 1) * sizeof(work_t *));
  if (works == NULL) {
    return CUDA_OUT_OF_MEMORY;
  }
  graph->works = works;
  graph->works[graph->count++] = work;
  return CUDA_SUCCESS_;
}

int32_t stand_in_enqueue(cuda_stream_t stream, stand_in_work_t run, void *context) {
  if (!is_stream(stream) || stream->device != stand_in_device()) {
    free(context);
    return CUDA_INVALID_HANDLE;
  }
  work_t *work = malloc(sizeof *work);
  if (work == NULL) {
    free(context);
    return CUDA_OUT_OF_MEMORY;
  }
  *work = (work_t){.run = run, .context = context, .users = 1};
  int32_t result =
      stream->captured != NULL ? capture(stream->captured, work) : append(stream, (item_t){.work = work});
  if (result != CUDA_SUCCESS_) {
    release(work);
  }
  return result;
}

/* ---- doing it ---- */

static int32_t drain_to(cuda_stream_t stream, uint64_t place);

static int32_t do_item(cuda_stream_t stream, const item_t *item) {
  if (item->wait != NULL) {
    return is_stream(item->wait) ? drain_to(item->wait, item->place) : CUDA_SUCCESS_;
  }
  if (item->event != NULL) {
    item->event->time = clock_now;
    return CUDA_SUCCESS_;
  }
  int32_t fault = stand_in_fault("late");
  if (fault == CUDA_SUCCESS_) {
    stand_in_open(stream->device);
    fault = item->work->run(item->work->context);
    stand_in_close(stream->device);
  }
  return fault;
}

static int32_t drain_to(cuda_stream_t stream, uint64_t place) {
  int32_t result = CUDA_SUCCESS_;
  while (stream->done < place && stream->first != NULL && !stream->is_draining) {
    item_t *item = stream->first;
    stream->is_draining = true;
    result = result == CUDA_SUCCESS_ ? do_item(stream, item) : result;
    stream->is_draining = false;
    stream->first = item->next;
    stream->last = stream->first == NULL ? NULL : stream->last;
    stream->done++;
    release(item->work);
    free(item);
  }
  if (result != CUDA_SUCCESS_) {
    stand_in_lose(result);
  }
  return result;
}

int32_t stand_in_drain(cuda_stream_t stream) {
  return is_stream(stream) ? drain_to(stream, stream->queued) : CUDA_INVALID_HANDLE;
}

/* ---- streams ---- */

#define ENTER(name)                       \
  int32_t result = stand_in_enter(#name); \
  if (result != CUDA_SUCCESS_) {          \
    return stand_in_leave(result);        \
  }

STAND_IN_EXPORT cuda_result_t cuStreamCreate(cuda_stream_t *stream, unsigned flags);
cuda_result_t cuStreamCreate(cuda_stream_t *stream, unsigned flags) {
  ENTER(cuStreamCreate)
  cuda_stream_t own =
      stand_in_device() < 0 || flags != CUDA_STREAM_NON_BLOCKING ? NULL : calloc(1, sizeof *own);
  if (own == NULL) {
    return stand_in_leave(stand_in_device() < 0 ? CUDA_INVALID_CONTEXT : CUDA_INVALID_VALUE);
  }
  own->device = stand_in_device();
  own->next = streams;
  streams = own;
  *stream = own;
  return stand_in_leave(CUDA_SUCCESS_);
}

STAND_IN_EXPORT cuda_result_t cuStreamDestroy_v2(cuda_stream_t stream);
cuda_result_t cuStreamDestroy_v2(cuda_stream_t stream) {
  (void)stand_in_enter("cuStreamDestroy_v2");
  cuda_stream_t *at = &streams;
  while (*at != NULL && *at != stream) {
    at = &(*at)->next;
  }
  if (*at == NULL) {
    return stand_in_leave(CUDA_INVALID_HANDLE);
  }
  (void)stand_in_drain(stream);
  *at = stream->next;
  free(stream);
  return stand_in_leave(CUDA_SUCCESS_);
}

STAND_IN_EXPORT cuda_result_t cuStreamSynchronize(cuda_stream_t stream);
cuda_result_t cuStreamSynchronize(cuda_stream_t stream) {
  ENTER(cuStreamSynchronize)
  return stand_in_leave(stand_in_is_capturing(stream) ? CUDA_CAPTURE_INVALIDATED : stand_in_drain(stream));
}

/* ---- events ---- */

STAND_IN_EXPORT cuda_result_t cuEventCreate(cuda_event_t *event, unsigned flags);
cuda_result_t cuEventCreate(cuda_event_t *event, unsigned flags) {
  ENTER(cuEventCreate)
  (void)flags;
  *event = stand_in_device() < 0 ? NULL : calloc(1, sizeof **event);
  return stand_in_leave(*event != NULL ? CUDA_SUCCESS_ : CUDA_INVALID_CONTEXT);
}

/* Work that marks the event goes on without it. */
STAND_IN_EXPORT cuda_result_t cuEventDestroy_v2(cuda_event_t event);
cuda_result_t cuEventDestroy_v2(cuda_event_t event) {
  (void)stand_in_enter("cuEventDestroy_v2");
  for (cuda_stream_t stream = streams; stream != NULL; stream = stream->next) {
    for (item_t *item = stream->first; item != NULL; item = item->next) {
      if (item->event == event) {
        item->event = NULL;
        item->wait = stream; /* for nothing */
        item->place = 0;
      }
    }
  }
  free(event);
  return stand_in_leave(CUDA_SUCCESS_);
}

STAND_IN_EXPORT cuda_result_t cuEventRecord(cuda_event_t event, cuda_stream_t stream);
cuda_result_t cuEventRecord(cuda_event_t event, cuda_stream_t stream) {
  ENTER(cuEventRecord)
  if (!is_stream(stream) || stream->captured != NULL) {
    return stand_in_leave(CUDA_INVALID_HANDLE);
  }
  result = append(stream, (item_t){.event = event});
  event->stream = stream;
  event->place = stream->queued;
  return stand_in_leave(result);
}

STAND_IN_EXPORT cuda_result_t cuEventSynchronize(cuda_event_t event);
cuda_result_t cuEventSynchronize(cuda_event_t event) {
  ENTER(cuEventSynchronize)
  return stand_in_leave(is_stream(event->stream) ? drain_to(event->stream, event->place) : CUDA_SUCCESS_);
}

STAND_IN_EXPORT cuda_result_t cuEventElapsedTime(float *milliseconds, cuda_event_t begin, cuda_event_t end);
cuda_result_t cuEventElapsedTime(float *milliseconds, cuda_event_t begin, cuda_event_t end) {
  ENTER(cuEventElapsedTime)
  *milliseconds = (float)(end->time - begin->time);
  return stand_in_leave(CUDA_SUCCESS_);
}

STAND_IN_EXPORT cuda_result_t cuStreamWaitEvent(cuda_stream_t stream, cuda_event_t event, unsigned flags);
cuda_result_t cuStreamWaitEvent(cuda_stream_t stream, cuda_event_t event, unsigned flags) {
  ENTER(cuStreamWaitEvent)
  (void)flags;
  if (!is_stream(stream) || stream->captured != NULL) {
    return stand_in_leave(CUDA_INVALID_HANDLE);
  }
  if (event->stream != NULL && event->stream != stream) {
    result = append(stream, (item_t){.wait = event->stream, .place = event->place});
  }
  return stand_in_leave(result);
}

/* ---- graphs ---- */

STAND_IN_EXPORT cuda_result_t cuStreamBeginCapture_v2(cuda_stream_t stream, int mode);
cuda_result_t cuStreamBeginCapture_v2(cuda_stream_t stream, int mode) {
  ENTER(cuStreamBeginCapture_v2)
  if (!is_stream(stream) || stream->captured != NULL || mode != CUDA_CAPTURE_RELAXED) {
    return stand_in_leave(CUDA_INVALID_VALUE);
  }
  stream->captured = calloc(1, sizeof *stream->captured);
  return stand_in_leave(stream->captured != NULL ? CUDA_SUCCESS_ : CUDA_OUT_OF_MEMORY);
}

STAND_IN_EXPORT cuda_result_t cuStreamEndCapture(cuda_stream_t stream, cuda_graph_t *graph);
cuda_result_t cuStreamEndCapture(cuda_stream_t stream, cuda_graph_t *graph) {
  int32_t result = stand_in_enter("cuStreamEndCapture");
  if (!stand_in_is_capturing(stream)) {
    return stand_in_leave(CUDA_INVALID_VALUE);
  }
  *graph = stream->captured;
  stream->captured = NULL;
  return stand_in_leave(result);
}

static void empty(struct CUgraph_st *graph) {
  for (size_t k = 0; k < graph->count; k++) {
    release(graph->works[k]);
  }
  free(graph->works);
}

STAND_IN_EXPORT cuda_result_t cuGraphDestroy(cuda_graph_t graph);
cuda_result_t cuGraphDestroy(cuda_graph_t graph) {
  (void)stand_in_enter("cuGraphDestroy");
  empty(graph);
  free(graph);
  return stand_in_leave(CUDA_SUCCESS_);
}

STAND_IN_EXPORT cuda_result_t cuGraphInstantiateWithFlags(cuda_graph_exec_t *exec, cuda_graph_t graph,
                                                          unsigned long long flags);
cuda_result_t cuGraphInstantiateWithFlags(cuda_graph_exec_t *exec, cuda_graph_t graph,
                                          unsigned long long flags) {
  ENTER(cuGraphInstantiateWithFlags)
  (void)flags;
  cuda_graph_exec_t own = calloc(1, sizeof *own);
  if (own == NULL) {
    return stand_in_leave(CUDA_OUT_OF_MEMORY);
  }
  own->device = stand_in_device();
  for (size_t k = 0; k < graph->count && result == CUDA_SUCCESS_; k++) {
    graph->works[k]->users++;
    result = capture(&own->graph, graph->works[k]);
  }
  *exec = own;
  return stand_in_leave(result);
}

STAND_IN_EXPORT cuda_result_t cuGraphLaunch(cuda_graph_exec_t exec, cuda_stream_t stream);
cuda_result_t cuGraphLaunch(cuda_graph_exec_t exec, cuda_stream_t stream) {
  ENTER(cuGraphLaunch)
  if (!is_stream(stream) || stream->device != exec->device || stream->captured != NULL) {
    return stand_in_leave(CUDA_INVALID_HANDLE);
  }
  for (size_t k = 0; k < exec->graph.count && result == CUDA_SUCCESS_; k++) {
    exec->graph.works[k]->users++;
    result = append(stream, (item_t){.work = exec->graph.works[k]});
  }
  return stand_in_leave(result);
}

STAND_IN_EXPORT cuda_result_t cuGraphExecDestroy(cuda_graph_exec_t exec);
cuda_result_t cuGraphExecDestroy(cuda_graph_exec_t exec) {
  (void)stand_in_enter("cuGraphExecDestroy");
  empty(&exec->graph);
  free(exec);
  return stand_in_leave(CUDA_SUCCESS_);
}
