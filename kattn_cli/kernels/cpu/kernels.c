/* The kernels in float and in double; each name ends in the type.

   w and what has its shape is (B, N, H, d), contiguous, C = H·d. */

#include <math.h>

#define BLOCK 256 /* tokens whose sum may be kept in REAL before it joins a double */
#define CHUNK 64  /* tokens between two saved states of a running sum; as in causal_tssa.py */
#define NORM_EPSILON 1e-12

typedef struct {
    long batch, tokens, heads, width;
    long first_sample, end_sample, first_token, end_token; /* what this thread computes */
    long sums;                                             /* which of the partial sums it adds to */
} Slice;

typedef struct {
    long batch, tokens, heads, width;
    long first, end; /* heads of samples, b·H + h */
} Heads;

#define REAL float
#define EXP expf
#define NAME(function) function##_float
#include "causal_tssa.h"
#include "tssa.h"
#undef REAL
#undef EXP
#undef NAME

#define REAL double
#define EXP exp
#define NAME(function) function##_double
#include "causal_tssa.h"
#include "tssa.h"
