// SPDX-License-Identifier: Apache-2.0
/*
 * Loops of our own, for what oneDNN computes wrongly or has no primitive for: steps of a program like its
 * primitives. Special values are those of the ONNX operators: a NaN stays one, the maximum of minus
 * infinities is minus infinity. All tensors are float32, row-major without gaps, unless said otherwise.
 */
#ifndef ONEDNN_LOOPS_H
#define ONEDNN_LOOPS_H

#include "kernels/amx/amx.h"
#include "kernels/amx/thirds.h"
#include "kernels/loops/loops.h"
#include "kernels/matrix/narrow.h"
#include "onednn/analysis/analysis.h"
#include "onednn/units/windows.h"

typedef struct onednn_loop onednn_loop_t;

/* Most arguments of a loop. */
enum { ONEDNN_LOOP_ARGUMENTS = 32 };

/* Who computes: at most `threads` threads, through the host. */
typedef struct onednn_crew {
  const cleave_host_t *host;
  int32_t threads;
} onednn_crew_t;

/* `data` are the memories of the step's arguments, in their order. False: the result of an earlier step may
 * be wrong because of special values (onednn_loop_watch). */
typedef bool (*onednn_loop_fn_t)(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

struct onednn_loop {
  onednn_loop_fn_t run;
  dnnl_alg_kind_t algorithm; /* what to compute, by the name that oneDNN has for it */
  float alpha;
  float beta;
  uint16_t lowest; /* bits of the lowest finite number, if elements have 16 */
  int32_t rank;
  int64_t dims[CLEAVE_MAX_RANK];
  int64_t strides[3][CLEAVE_MAX_RANK]; /* per argument, in elements; 0 if it is broadcast or reduced */
  onednn_window_t window;
  const void *context; /* what else it knows, or NULL; the program gets a copy */
  size_t context_bytes;
  void (*release)(const void *context); /* what the context owns, or NULL; called once, for the last copy */
};

/* Releases what a loop (or NULL) owns. */
static inline void onednn_loop_release(const onednn_loop_t *loop) {
  if (loop != NULL && loop->release != NULL) {
    loop->release(loop->context);
  }
}

/* data: source, result, in any layout without gaps; dims[0]: how many elements. The result may be the source.
 */
bool onednn_loop_eltwise(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* The elementwise function as an operator of kernels/, with oneDNN's alpha; KERNEL_OP_COUNT: it is none. */
kernel_op_t onednn_loop_operator(dnnl_alg_kind_t algorithm, float alpha);

/* onednn_loop_eltwise for Swish alone, x / (1 + exp(-alpha x)) with a finite alpha; raises the flag "invalid"
 * only if a result is a NaN that no element was. */
bool onednn_loop_swish(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* data: source, result, both of shape `dims` with `strides[0]`. */
bool onednn_loop_copy(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* data: left, right, result of shape `dims`. Maximum or minimum. */
bool onednn_loop_binary(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* data: source of shape `dims`, result with `strides[1]`, in which reduced dimensions are 0. */
bool onednn_loop_extreme(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* data: source of shape `dims`, result with `strides[1]`, in which reduced dimensions are 0: sums over
 * `alpha`, of squares if the algorithm is norm_lp_power_p_sum. */
bool onednn_loop_sum(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* data: source, result; dims: rows, elements of a row, elements between two of a row. `alpha` is what rows of
 * nothing but minus infinity give. */
bool onednn_loop_softmax(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* data: source, result; dims[0]: planes; strides[0], strides[1]: the three spatial sizes of source and
 * result, as the three dimensions of `window`. */
bool onednn_loop_max_pool(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* data: the result of a max pooling of oneDNN, in any layout; dims[0]: how many elements. False if one is
 * the lowest finite number, which oneDNN also gives for minus infinity. */
bool onednn_loop_watch(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* onednn_loop_watch for elements of 16 bits. */
bool onednn_loop_watch_short(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* What onednn_loop_shuffle computes: of each pixel, channel i of group k is channel i groups + k, and result
 * `result[j]` has `count[j]` channels from `start[j]` on. Pixels of group k begin `apart[k]` elements from
 * each other in `data[argument[k]]`, `offset[k]` elements from its start; those of results without gaps. */
typedef struct onednn_shuffle_loop {
  int64_t groups;
  uint32_t argument[ONEDNN_SHUFFLE_GROUPS];
  int64_t offset[ONEDNN_SHUFFLE_GROUPS];
  int64_t apart[ONEDNN_SHUFFLE_GROUPS];
  uint32_t part_count;
  uint32_t result[ONEDNN_LOOP_ARGUMENTS];
  int64_t start[ONEDNN_LOOP_ARGUMENTS];
  int64_t count[ONEDNN_LOOP_ARGUMENTS];
} onednn_shuffle_loop_t;

/* data: sources, results; dims[0]: pixels; context: onednn_shuffle_loop_t. */
bool onednn_loop_shuffle(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* Most rows that onednn_loop_product multiplies. */
enum { ONEDNN_FEW_ROWS = 4 };

/* data: x, w, bias if `rank` is 4, y. x is [M, K], y is [M, N]; w is [N, K], so that y = x w' + bias. dims:
 * M, at most ONEDNN_FEW_ROWS, N, K. */
bool onednn_loop_product(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* What steps have in common that compute float32 by AMX. */
typedef struct onednn_thirds {
  kernel_thirds_t thirds;
  kernel_thirds_cut_t cut;
  int64_t slots; /* of scratch memory, each for one unit at a time */
  bool is_split; /* the step before has left the thirds of x in scratch memory */
} onednn_thirds_t;

/* Cuts the work, of which all sizes are set, and says how many bytes of scratch memory it takes. */
size_t onednn_thirds_cut(onednn_thirds_t *step, int32_t threads);

/* Does it leave the thirds that the other step needs, if they read the same x? */
bool onednn_thirds_leave(const onednn_thirds_t *step, const onednn_thirds_t *next);
void onednn_thirds_run(const onednn_thirds_t *step, const onednn_crew_t *crew,
                       const kernel_thirds_data_t *data, void *scratch);

/* Products of kernels/matrix: of float32, of float32 with packed integers; and of kernels/amx: of bfloat16 or
 * 8-bit integers, of float32 in thirds. */
typedef enum onednn_matrix_kind {
  ONEDNN_MATRIX_PLAIN,
  ONEDNN_MATRIX_NARROW,
  ONEDNN_MATRIX_AMX,
  ONEDNN_MATRIX_THIRDS
} onednn_matrix_kind_t;

typedef struct onednn_matrix_loop {
  onednn_matrix_kind_t kind;
  union {
    kernel_matrix_t plain;
    kernel_narrow_t narrow;
    kernel_amx_t amx;
    onednn_thirds_t thirds;
  };
  bool has_scale;
  bool has_bias;
  bool has_sum;
} onednn_matrix_loop_t;

/* data: x, packed weights, scales of integers by AMX, bias and what is added if there are such, scratch
 * memory for packed integers and for thirds, y; context: onednn_matrix_loop_t. */
bool onednn_loop_matrix(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* data: x, running mean and variance, and as results mean, variance, running mean and variance of its
 * channels. dims: images, channels, pixels of an image; strides[0]: how far apart images are, channels (or
 * blocks of 16 channels, unless pixels are neighbours), pixels. The running ones keep `alpha` of what they
 * are. */
bool onednn_loop_statistics(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* Channels last; dims: images, pixels of one, channels. data: image, numbers of the channels, which are
 * `strides[1][0]` apart from an image to the next, result, which may be the image. */
bool onednn_loop_scale_channels(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* Parts of an image whose pixels are added up first. */
enum { ONEDNN_PIXEL_PARTS = 8 };

/* The means over the pixels. data: image, scratch memory for ONEDNN_PIXEL_PARTS results, result. */
bool onednn_loop_pixel_means(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* data: dy, y, result, in the same layout without gaps; dims[0]: how many elements. dy where y is positive.
 * The result may be dy. */
bool onednn_loop_relu_gradient(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* 8-bit integers: number = (integer - zero) * scale. */
typedef struct onednn_bytes {
  float scale;
  float zero;
  bool is_signed;
} onednn_bytes_t;

/* The operands in the order of the data, without those that are float32; numbers below `least` become it. */
typedef struct onednn_bytes_loop {
  onednn_bytes_t operands[3];
  float least;
} onednn_bytes_loop_t;

/* dims[0] elements, in one dense layout; context: onednn_bytes_loop_t. data: integers, numbers; numbers,
 * integers, rounded to even and saturated, NaN to the lowest; two tensors of integers, and those of their
 * sum. */
bool onednn_loop_dequantize(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);
bool onednn_loop_quantize(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);
bool onednn_loop_add_bytes(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data);

/* Loops carry this mark to be compiled for several instruction sets; one is picked when the program starts.
 */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ONEDNN_VECTOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ONEDNN_VECTOR
#endif

#endif /* ONEDNN_LOOPS_H */
