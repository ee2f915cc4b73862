/* The kernels in float and in double; each name ends in the type.

   w of TSSA and what has its shape is (B, N, H, d), contiguous, C = H·d. */

#include <math.h>
#include <stdlib.h>

#define BLOCK 256 /* tokens whose sum may be kept in REAL before it joins a double */
#define CHUNK 64  /* tokens between two saved states of a running sum; as in causal_tssa/equations.py */
#define NORM_EPSILON 1e-12

typedef struct {
    long batch, tokens, heads, width;
    long first_sample, end_sample, first_token, end_token; /* what this part computes */
    long sums;                                             /* which of the partial sums it adds to */
} Slice;

typedef struct {
    long batch, tokens, heads, width;
    long first_sample, end_sample, first_head, end_head; /* what this part computes */
} Heads;

typedef struct {
    long first_head, end_head; /* what this part computes */
    long tokens, width, directions;
    long head, token, score_head, score_token, norm_head; /* strides */
} Rows;

/* One thread for each part of the work. */
#define EACH_PART                                                                   \
    _Pragma("omp parallel for num_threads((int)*count) schedule(static, 1)") \
    for (long part = 0; part < *count; part++)

static void *scratch(size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory) abort();
    return memory;
}

#define REAL float
#define EXP expf
#define SQRT sqrtf
#define NAME(function) function##_float
#include "causal_tssa/causal_tssa.h"
#include "primal/primal.h"
#include "tssa/tssa.h"
#undef REAL
#undef EXP
#undef SQRT
#undef NAME

#define REAL double
#define EXP exp
#define SQRT sqrt
#define NAME(function) function##_double
#include "causal_tssa/causal_tssa.h"
#include "primal/primal.h"
#include "tssa/tssa.h"
