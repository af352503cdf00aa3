// SPDX-License-Identifier: Apache-2.0
// A window g becomes G g G^T. The rows of G evaluate a polynomial at the points of the algorithm: 0, 1, -1
// and infinity for tiles of 4x4; 0, 5/8, -5/8, 3/2, -3/2 and infinity for tiles of 6x6, divided by what the
// transform of images leaves out. Blocks of 16x16 channels are made one by one, by any thread; layouts differ
// in where a block begins and how far apart its numbers are.
#include "onednn/weights/winograd.h"

#include "kernels/winograd/winograd.h"

enum { WINDOW = 3, AREA = WINDOW * WINDOW, SMALL = 4, LARGE = 6, BLOCK = 16 };

static const float small_transform[SMALL][WINDOW] = {
    {1.0F, 0.0F, 0.0F}, {0.5F, 0.5F, 0.5F}, {0.5F, -0.5F, 0.5F}, {0.0F, 0.0F, 1.0F}};

#define P KERNEL_WINOGRAD_P
#define Q KERNEL_WINOGRAD_Q
#define AT_0 (1.0 / (P * P * Q * Q))
#define AT_P (1.0 / (2.0 * P * P * (P * P - Q * Q)))
#define AT_Q (1.0 / (2.0 * Q * Q * (Q * Q - P * P)))

#define ROW(scale, point) \
  { (float)(scale), (float)((scale) * (point)), (float)((scale) * (point) * (point)) }

static const float large_transform[LARGE][WINDOW] = {
    {(float)AT_0, 0.0F, 0.0F}, ROW(AT_P, P), ROW(AT_P, -P), ROW(AT_Q, Q), ROW(AT_Q, -Q), {0.0F, 0.0F, 1.0F}};

// The side of a tile, if the weights are for kernels/winograd: panels of 16 outputs, of [side x side,
// inputs].
static int side_of_panels(const onednn_layout_t *plain, const onednn_layout_t *packed) {
  for (int side = SMALL; side <= LARGE; side += LARGE - SMALL) {
    const onednn_shape_t shape = {.rank = 3, .dims = {plain->dims[0], (int64_t)side * side, plain->dims[1]}};
    onednn_layout_t panels = onednn_layout_panels(&shape);
    if (onednn_md_equal(&panels, packed)) {
      return side;
    }
  }
  return 0;
}

bool onednn_winograd_packs(const onednn_layout_t *plain, const onednn_layout_t *packed) {
  const onednn_wino_t *wino = onednn_layout_wino(packed);
  if (plain->ndims != 4 || !onednn_layout_is_plain(plain) || plain->dims[2] != WINDOW ||
      plain->dims[3] != WINDOW) {
    return false;
  }
  if (wino == NULL) {
    return side_of_panels(plain, packed) != 0;
  }
  if (wino->r != WINDOW || wino->oc != plain->dims[0] || wino->ic != plain->dims[1] ||
      wino->oc_block != BLOCK || wino->ic_block != BLOCK || wino->oc % BLOCK != 0 || wino->ic % BLOCK != 0 ||
      wino->oc2_block < 1 || wino->oc / BLOCK % wino->oc2_block != 0 || wino->ic2_block < 1 ||
      wino->ic / BLOCK % wino->ic2_block != 0 ||
      wino->size !=
          sizeof(float) * (size_t)wino->alpha * (size_t)wino->alpha * (size_t)wino->oc * (size_t)wino->ic) {
    return false;
  }
  bool is_small = wino->wino_format == dnnl_wino_wei_aaOio || wino->wino_format == dnnl_wino_wei_aaOBiOo;
  bool is_large = wino->wino_format == dnnl_wino_wei_OBaaIBOIio;
  return (is_small && wino->alpha == SMALL) || (is_large && wino->alpha == LARGE);
}

// The place of a block of numbers, in floats.
typedef struct place {
  int64_t first;
  int64_t apart;  // from one element of the tile to the next
  int64_t line;   // from one input channel to the next; 16 output channels lie side by side
} place_t;

static place_t place_of(const onednn_wino_t *wino, int64_t output, int64_t input) {
  int64_t inputs = wino->ic / BLOCK;
  int64_t beside = wino->oc2_block;
  int64_t deep = wino->ic2_block;
  int64_t chunk = output / beside;
  int64_t within = output % beside;
  int64_t all = (int64_t)wino->oc * wino->ic;
  switch (wino->wino_format) {
    case dnnl_wino_wei_aaOio:
      return (place_t){.first = (output * inputs + input) * BLOCK * BLOCK, .apart = all, .line = BLOCK};
    case dnnl_wino_wei_aaOBiOo:
      return (place_t){.first = ((chunk * inputs + input) * BLOCK * beside + within) * BLOCK,
                       .apart = all,
                       .line = beside * BLOCK};
    default: break;
  }
  // OBaaIBOIio: a chunk of outputs has all of its tiles before the next one begins.
  int64_t apart = beside * inputs * BLOCK * BLOCK;
  int64_t block = (input / deep * beside + within) * deep + input % deep;
  return (place_t){
      .first = chunk * LARGE * LARGE * apart + block * BLOCK * BLOCK, .apart = apart, .line = BLOCK};
}

// Sums from zero and term by term, as oneDNN does.
static inline void combine(const float *factors, const float *a, const float *b, const float *c, float *out) {
  for (int k = 0; k < BLOCK; k++) {
    out[k] = 0.0F + factors[0] * a[k] + factors[1] * b[k] + factors[2] * c[k];
  }
}

// A block of channels: the weights of its first output and input, and how many there are of either.
typedef struct block {
  const float *from;
  int64_t stride;  // from an output channel to the next
  int64_t outputs;
  int64_t inputs;
} block_t;

static inline void pack_block(int side, const float transform[][WINDOW], const block_t *block,
                              const place_t *place, float *out) {
  float window[WINDOW][WINDOW][BLOCK] = {0};
  float rows[WINDOW][LARGE][BLOCK];
  for (int64_t input = 0; input < block->inputs; input++) {
    for (int64_t output = 0; output < block->outputs; output++) {
      for (int k = 0; k < AREA; k++) {
        window[k / WINDOW][k % WINDOW][output] = block->from[output * block->stride + input * AREA + k];
      }
    }
    for (int h = 0; h < WINDOW; h++) {
      for (int x = 0; x < side; x++) {
        combine(transform[x], window[h][0], window[h][1], window[h][2], rows[h][x]);
      }
    }
    float *line = out + place->first + input * place->line;
    for (int y = 0; y < side; y++) {
      for (int x = 0; x < side; x++) {
        combine(transform[y], rows[0][x], rows[1][x], rows[2][x], line + (y * side + x) * place->apart);
      }
    }
  }
}

typedef struct packing {
  const onednn_wino_t *wino;  // or NULL: panels
  int64_t side;
  int64_t outputs;
  int64_t inputs;
  int64_t first;         // of the blocks of outputs to be packed
  const float *weights;  // of the first of these
  float *out;
} packing_t;

static place_t place_in_panels(const packing_t *packing, int64_t output, int64_t input) {
  int64_t points = packing->side * packing->side;
  return (place_t){.first = (output * points * packing->inputs + input * BLOCK) * BLOCK,
                   .apart = packing->inputs * BLOCK,
                   .line = BLOCK};
}

static int64_t count_blocks(int64_t channels) {
  return (channels + BLOCK - 1) / BLOCK;
}

static int64_t part_of(int64_t channels, int64_t block) {
  int64_t left = channels - block * BLOCK;
  return left < BLOCK ? left : BLOCK;
}

static void pack_blocks(void *context, int64_t begin, int64_t end) {
  const packing_t *packing = context;
  int64_t inputs = count_blocks(packing->inputs);
  int64_t stride = packing->inputs * AREA;
  for (int64_t k = begin; k < end; k++) {
    int64_t output = packing->first + k / inputs;
    int64_t input = k % inputs;
    const block_t block = {.from = packing->weights + k / inputs * BLOCK * stride + input * BLOCK * AREA,
                           .stride = stride,
                           .outputs = part_of(packing->outputs, output),
                           .inputs = part_of(packing->inputs, input)};
    place_t place = packing->wino != NULL ? place_of(packing->wino, output, input)
                                          : place_in_panels(packing, output, input);
    if (packing->side == SMALL) {
      pack_block(SMALL, small_transform, &block, &place, packing->out);
    } else {
      pack_block(LARGE, large_transform, &block, &place, packing->out);
    }
  }
}

void onednn_winograd_pack(const cleave_host_t *host, int32_t threads, const onednn_layout_t *packed,
                          const int64_t outputs[2], const float *weights, float *out) {
  const onednn_wino_t *wino = onednn_layout_wino(packed);
  packing_t packing = {.wino = wino, .first = outputs[0] / BLOCK, .weights = weights, .out = out};
  if (wino != NULL) {
    packing.side = wino->alpha;
    packing.outputs = wino->oc;
    packing.inputs = wino->ic;
  } else {
    packing.side = packed->dims[1] == SMALL * SMALL ? SMALL : LARGE;
    packing.outputs = packed->dims[0];
    packing.inputs = packed->dims[2];
  }
  int64_t blocks = count_blocks(outputs[1]) - packing.first;
  host->parallel_for(threads, blocks * count_blocks(packing.inputs), 16, pack_blocks, &packing);
}
