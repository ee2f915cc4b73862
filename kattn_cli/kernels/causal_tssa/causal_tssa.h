/* Causal TSSA. A thread runs along the tokens with some of the heads; what couples heads is (B, N, H), between passes.

   Running sums are a base in double, saved before each chunk (B, chunks, H, d), and a sum in REAL within the chunk. */

static inline long NAME(chunks)(const Heads *s) { return (s->tokens + CHUNK - 1) / CHUNK; }

/* At the start of a chunk: what ran within the last joins the base, which is saved as this chunk's state. */
static inline void NAME(next_chunk)(long width, double *restrict base, REAL *restrict within, REAL *restrict state) {
    for (long j = 0; j < width; j++) {
        base[j] += within[j];
        state[j] = (REAL)base[j];
        within[j] = 0;
    }
}

/* Energies Σ w² / Σ_{u≤i} w², plain w² without `normalize`; the states of Σ w². */
void NAME(causal_energy)(const Heads *parts, const long *count, const long *normalize, const REAL *restrict w, REAL *restrict energy,
                         REAL *restrict states) {
    EACH_PART {
        const Heads *s = parts + part;
        const long N = s->tokens, H = s->heads, d = s->width, C = H * d, normal = *normalize;
        const long heads = s->end_head - s->first_head, width = heads * d;
        double base[width];
        REAL within[width];
        for (long b = s->first_sample; b < s->end_sample; b++) {
            const REAL *before = states;
            for (long j = 0; j < width; j++) base[j] = within[j] = 0;
            for (long i = 0; i < N; i++) {
                const long token = b * N + i;
                const REAL *restrict x = w + token * C + s->first_head * d;
                if (i % CHUNK == 0) {
                    REAL *state = states + (b * NAME(chunks)(s) + i / CHUNK) * C + s->first_head * d;
                    NAME(next_chunk)(width, base, within, state);
                    before = state;
                }
                for (long h = 0; h < heads; h++) {
                    REAL sum = 0;
                    for (long j = h * d; j < (h + 1) * d; j++) {
                        const REAL square = x[j] * x[j];
                        within[j] += square;
                        const REAL running = before[j] + within[j];
                        const REAL norm = running > (REAL)NORM_EPSILON ? running : (REAL)NORM_EPSILON;
                        sum += normal ? square / norm : square;
                    }
                    energy[token * H + s->first_head + h] = sum;
                }
            }
        }
    }
}

/* −w Π / (1 + Σ Π w² / mass); the states of Σ Π w². */
void NAME(causal_output)(const Heads *parts, const long *count, const REAL *restrict w, const REAL *restrict membership,
                         const REAL *restrict mass, REAL *restrict out, REAL *restrict states) {
    EACH_PART {
        const Heads *s = parts + part;
        const long N = s->tokens, H = s->heads, d = s->width, C = H * d;
        const long heads = s->end_head - s->first_head, width = heads * d;
        double base[width];
        REAL within[width];
        for (long b = s->first_sample; b < s->end_sample; b++) {
            const REAL *before = states;
            for (long j = 0; j < width; j++) base[j] = within[j] = 0;
            for (long i = 0; i < N; i++) {
                const long token = b * N + i;
                const REAL *restrict x = w + token * C + s->first_head * d;
                REAL *restrict y = out + token * C + s->first_head * d;
                if (i % CHUNK == 0) {
                    REAL *state = states + (b * NAME(chunks)(s) + i / CHUNK) * C + s->first_head * d;
                    NAME(next_chunk)(width, base, within, state);
                    before = state;
                }
                for (long h = 0; h < heads; h++) {
                    const REAL p = membership[token * H + s->first_head + h];
                    const REAL inverse = 1 / mass[token * H + s->first_head + h];
                    for (long j = h * d; j < (h + 1) * d; j++) {
                        within[j] += p * x[j] * x[j];
                        y[j] = -x[j] * p / (1 + (before[j] + within[j]) * inverse);
                    }
                }
            }
        }
    }
}

/* Σ w² after each token of a chunk, or Σ Π w² where there is a membership: (CHUNK, width). */
static inline void NAME(running_sums)(const Heads *s, long first, long count, const REAL *restrict w,
                                      const REAL *restrict membership, const REAL *restrict state,
                                      REAL *restrict sums) {
    const long H = s->heads, d = s->width, heads = s->end_head - s->first_head, width = heads * d;
    REAL within[width];
    for (long j = 0; j < width; j++) within[j] = 0;
    for (long k = 0; k < count; k++) {
        const REAL *restrict x = w + (first + k) * H * d + s->first_head * d;
        for (long h = 0; h < heads; h++) {
            const REAL p = membership ? membership[(first + k) * H + s->first_head + h] : 1;
            for (long j = h * d; j < (h + 1) * d; j++) {
                within[j] += p * x[j] * x[j];
                sums[k * width + j] = state[j] + within[j];
            }
        }
    }
}

/* ∂Π (B, N, H) but for the mass, and ∂mass of each token. */
void NAME(causal_backward_membership)(const Heads *parts, const long *count, const REAL *restrict w, const REAL *restrict grad,
                                      const REAL *restrict membership, const REAL *restrict mass,
                                      const REAL *restrict moment_states, REAL *restrict by_membership,
                                      REAL *restrict by_mass) {
    EACH_PART {
        const Heads *s = parts + part;
        const long N = s->tokens, H = s->heads, d = s->width, C = H * d;
        const long heads = s->end_head - s->first_head, width = heads * d;
        double base[width];
        REAL after[width], within[width], *moments = scratch(CHUNK * width * sizeof(REAL));
        for (long b = s->first_sample; b < s->end_sample; b++) {
            for (long j = 0; j < width; j++) base[j] = within[j] = 0;
            for (long chunk = NAME(chunks)(s) - 1; chunk >= 0; chunk--) {
                const long start = chunk * CHUNK, count = start + CHUNK < N ? CHUNK : N - start, first = b * N + start;
                const REAL *state = moment_states + (b * NAME(chunks)(s) + chunk) * C + s->first_head * d;
                NAME(running_sums)(s, first, count, w, membership, state, moments);
                NAME(next_chunk)(width, base, within, after);
                for (long k = count - 1; k >= 0; k--) {
                    const REAL *restrict x = w + (first + k) * C + s->first_head * d;
                    const REAL *restrict g = grad + (first + k) * C + s->first_head * d;
                    const REAL *restrict moment = moments + k * width;
                    for (long h = 0; h < heads; h++) {
                        const long at = (first + k) * H + s->first_head + h;
                        const REAL p = membership[at], inverse = 1 / mass[at];
                        REAL direct = 0, through_mass = 0, through_moment = 0;
                        for (long j = h * d; j < (h + 1) * d; j++) {
                            const REAL mean = moment[j] * inverse, shrink = 1 / (1 + mean);
                            const REAL product = g[j] * x[j] * shrink, by_mean = product * shrink * p;
                            direct += product;
                            through_mass += by_mean * mean;
                            within[j] += by_mean * inverse;
                            through_moment += (after[j] + within[j]) * x[j] * x[j];
                        }
                        by_membership[at] = through_moment - direct;
                        by_mass[at] = -through_mass * inverse;
                    }
                }
            }
        }
        free(moments);
    }
}

/* ∂w, from ∂E of each token. */
void NAME(causal_backward_input)(const Heads *parts, const long *count, const long *normalize, const REAL *restrict w,
                                 const REAL *restrict grad, const REAL *restrict membership,
                                 const REAL *restrict mass, const REAL *restrict by_energy,
                                 const REAL *restrict energy_states, const REAL *restrict moment_states,
                                 REAL *restrict by_w) {
    EACH_PART {
        const Heads *s = parts + part;
        const long N = s->tokens, H = s->heads, d = s->width, C = H * d, normal = *normalize;
        const long heads = s->end_head - s->first_head, width = heads * d;
        double base[width], norm_base[width];
        REAL *moments = scratch(CHUNK * width * sizeof(REAL)), *norms = scratch(CHUNK * width * sizeof(REAL));
        REAL after[width], within[width], norm_after[width], norm_within[width];
        for (long b = s->first_sample; b < s->end_sample; b++) {
            for (long j = 0; j < width; j++) base[j] = norm_base[j] = within[j] = norm_within[j] = 0;
            for (long chunk = NAME(chunks)(s) - 1; chunk >= 0; chunk--) {
                const long start = chunk * CHUNK, count = start + CHUNK < N ? CHUNK : N - start, first = b * N + start;
                const long state = (b * NAME(chunks)(s) + chunk) * C + s->first_head * d;
                NAME(running_sums)(s, first, count, w, membership, moment_states + state, moments);
                if (normal) NAME(running_sums)(s, first, count, w, 0, energy_states + state, norms);
                NAME(next_chunk)(width, base, within, after);
                NAME(next_chunk)(width, norm_base, norm_within, norm_after);
                for (long k = count - 1; k >= 0; k--) {
                    const REAL *restrict x = w + (first + k) * C + s->first_head * d;
                    const REAL *restrict g = grad + (first + k) * C + s->first_head * d;
                    const REAL *restrict moment = moments + k * width, *restrict norm = norms + k * width;
                    REAL *restrict y = by_w + (first + k) * C + s->first_head * d;
                    for (long h = 0; h < heads; h++) {
                        const long at = (first + k) * H + s->first_head + h;
                        const REAL p = membership[at], inverse = 1 / mass[at], e = by_energy[at];
                        for (long j = h * d; j < (h + 1) * d; j++) {
                            const REAL shrink = 1 / (1 + moment[j] * inverse), forward = g[j] * p * shrink;
                            within[j] += forward * x[j] * shrink * inverse;
                            y[j] = 2 * x[j] * (after[j] + within[j]) * p - forward;
                        }
                        if (!normal) {
                            for (long j = h * d; j < (h + 1) * d; j++) y[j] += 2 * x[j] * e;
                            continue;
                        }
                        for (long j = h * d; j < (h + 1) * d; j++) {
                            const int clamped = !(norm[j] > (REAL)NORM_EPSILON);
                            const REAL over = 1 / (clamped ? (REAL)NORM_EPSILON : norm[j]);
                            const REAL share = clamped ? 0 : x[j] * x[j] * over, later = norm_after[j] + norm_within[j];
                            y[j] += 2 * x[j] * (e * over * (1 - share) - later);
                            norm_within[j] += e * over * share;
                        }
                    }
                }
            }
        }
        free(moments);
        free(norms);
    }
}
