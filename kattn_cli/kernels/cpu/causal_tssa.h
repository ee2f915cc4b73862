/* Causal TSSA. A head reads its d features of every token; what couples the heads is (B, N, H) and computed between.

   Running sums are a base in double, saved before each chunk (B, chunks, H, d), and a sum in REAL within the chunk. */

static inline long NAME(chunks)(const Heads *s) { return (s->tokens + CHUNK - 1) / CHUNK; }

/* Energies Σ w² / Σ_{u≤i} w², plain w² without `normalize`; the states of Σ w². */
void NAME(causal_energy)(const Heads *s, const long *normalize, const REAL *restrict w, REAL *restrict energy,
                         REAL *restrict states) {
    const long N = s->tokens, H = s->heads, d = s->width, C = H * d;
    for (long head = s->first; head < s->end; head++) {
        const long b = head / H, h = head % H;
        double base[d];
        REAL before[d], within[d];
        for (long j = 0; j < d; j++) base[j] = 0;
        for (long i = 0; i < N; i++) {
            const REAL *restrict x = w + (b * N + i) * C + h * d;
            if (i % CHUNK == 0) {
                REAL *restrict state = states + ((b * NAME(chunks)(s) + i / CHUNK) * H + h) * d;
                for (long j = 0; j < d; j++) {
                    if (i) base[j] += within[j];
                    state[j] = before[j] = (REAL)base[j];
                    within[j] = 0;
                }
            }
            REAL sum = 0;
            for (long j = 0; j < d; j++) {
                const REAL square = x[j] * x[j];
                within[j] += square;
                const REAL running = before[j] + within[j];
                const REAL norm = *normalize ? (running > (REAL)NORM_EPSILON ? running : (REAL)NORM_EPSILON) : 1;
                sum += square / norm;
            }
            energy[(b * N + i) * H + h] = sum;
        }
    }
}

/* −w Π / (1 + Σ Π w² / mass); the states of Σ Π w². */
void NAME(causal_output)(const Heads *s, const REAL *restrict w, const REAL *restrict membership,
                         const REAL *restrict mass, REAL *restrict out, REAL *restrict states) {
    const long N = s->tokens, H = s->heads, d = s->width, C = H * d;
    for (long head = s->first; head < s->end; head++) {
        const long b = head / H, h = head % H;
        double base[d];
        REAL before[d], within[d];
        for (long j = 0; j < d; j++) base[j] = 0;
        for (long i = 0; i < N; i++) {
            const long token = b * N + i;
            const REAL *restrict x = w + token * C + h * d;
            REAL *restrict y = out + token * C + h * d;
            if (i % CHUNK == 0) {
                REAL *restrict state = states + ((b * NAME(chunks)(s) + i / CHUNK) * H + h) * d;
                for (long j = 0; j < d; j++) {
                    if (i) base[j] += within[j];
                    state[j] = before[j] = (REAL)base[j];
                    within[j] = 0;
                }
            }
            const REAL p = membership[token * H + h], inverse = 1 / mass[token * H + h];
            for (long j = 0; j < d; j++) {
                within[j] += p * x[j] * x[j];
                y[j] = -x[j] * p / (1 + (before[j] + within[j]) * inverse);
            }
        }
    }
}

/* Σ Π w² after each token of a chunk, (CHUNK, d). */
static void NAME(moments)(const REAL *restrict w, const REAL *restrict membership, const REAL *restrict state,
                          long count, long H, long d, REAL *restrict moments) {
    REAL within[d];
    for (long j = 0; j < d; j++) within[j] = 0;
    for (long k = 0; k < count; k++) {
        const REAL *restrict x = w + k * H * d;
        const REAL p = membership[k * H];
        for (long j = 0; j < d; j++) {
            within[j] += p * x[j] * x[j];
            moments[k * d + j] = state[j] + within[j];
        }
    }
}

/* ∂Π (B, N, H) but for the mass, and ∂mass of each token. */
void NAME(causal_backward_membership)(const Heads *s, const REAL *restrict w, const REAL *restrict grad,
                                      const REAL *restrict membership, const REAL *restrict mass,
                                      const REAL *restrict moment_states, REAL *restrict by_membership,
                                      REAL *restrict by_mass) {
    const long N = s->tokens, H = s->heads, d = s->width, C = H * d;
    REAL moments[CHUNK * d];
    for (long head = s->first; head < s->end; head++) {
        const long b = head / H, h = head % H;
        double base[d];
        for (long j = 0; j < d; j++) base[j] = 0;
        for (long chunk = NAME(chunks)(s) - 1; chunk >= 0; chunk--) {
            const long start = chunk * CHUNK, count = start + CHUNK < N ? CHUNK : N - start;
            const long first = b * N + start;
            const REAL *state = moment_states + ((b * NAME(chunks)(s) + chunk) * H + h) * d;
            NAME(moments)(w + first * C + h * d, membership + first * H + h, state, count, H, d, moments);
            REAL after[d], within[d];
            for (long j = 0; j < d; j++) after[j] = (REAL)base[j], within[j] = 0;
            for (long k = count - 1; k >= 0; k--) {
                const long token = first + k;
                const REAL *restrict x = w + token * C + h * d, *restrict g = grad + token * C + h * d;
                const REAL p = membership[token * H + h], inverse = 1 / mass[token * H + h];
                REAL direct = 0, through_mass = 0, through_moment = 0;
                for (long j = 0; j < d; j++) {
                    const REAL mean = moments[k * d + j] * inverse, shrink = 1 / (1 + mean);
                    const REAL product = g[j] * x[j] * shrink, by_mean = product * shrink * p;
                    direct += product;
                    through_mass += by_mean * mean;
                    within[j] += by_mean * inverse;
                    through_moment += (after[j] + within[j]) * x[j] * x[j];
                }
                by_membership[token * H + h] = through_moment - direct;
                by_mass[token * H + h] = -through_mass * inverse;
            }
            for (long j = 0; j < d; j++) base[j] += within[j];
        }
    }
}

/* ∂w, from ∂E of each token. */
void NAME(causal_backward_input)(const Heads *s, const long *normalize, const REAL *restrict w,
                                 const REAL *restrict grad, const REAL *restrict membership,
                                 const REAL *restrict mass, const REAL *restrict by_energy,
                                 const REAL *restrict energy_states, const REAL *restrict moment_states,
                                 REAL *restrict by_w) {
    const long N = s->tokens, H = s->heads, d = s->width, C = H * d;
    REAL moments[CHUNK * d], norms[CHUNK * d], ones[CHUNK * H];
    for (long k = 0; k < CHUNK * H; k++) ones[k] = 1;
    for (long head = s->first; head < s->end; head++) {
        const long b = head / H, h = head % H;
        double base[d], norm_base[d];
        for (long j = 0; j < d; j++) base[j] = norm_base[j] = 0;
        for (long chunk = NAME(chunks)(s) - 1; chunk >= 0; chunk--) {
            const long start = chunk * CHUNK, count = start + CHUNK < N ? CHUNK : N - start;
            const long first = b * N + start, at = ((b * NAME(chunks)(s) + chunk) * H + h) * d;
            const REAL *restrict inputs = w + first * C + h * d;
            NAME(moments)(inputs, membership + first * H + h, moment_states + at, count, H, d, moments);
            if (*normalize) NAME(moments)(inputs, ones, energy_states + at, count, H, d, norms);
            REAL after[d], within[d], norm_after[d], norm_within[d];
            for (long j = 0; j < d; j++) {
                after[j] = (REAL)base[j], norm_after[j] = (REAL)norm_base[j];
                within[j] = norm_within[j] = 0;
            }
            for (long k = count - 1; k >= 0; k--) {
                const long token = first + k;
                const REAL *restrict x = w + token * C + h * d, *restrict g = grad + token * C + h * d;
                REAL *restrict y = by_w + token * C + h * d;
                const REAL p = membership[token * H + h], inverse = 1 / mass[token * H + h];
                const REAL e = by_energy[token * H + h];
                for (long j = 0; j < d; j++) {
                    const REAL shrink = 1 / (1 + moments[k * d + j] * inverse), forward = g[j] * p * shrink;
                    within[j] += forward * x[j] * shrink * inverse;
                    REAL by_square = (after[j] + within[j]) * p;
                    if (*normalize) {
                        const REAL square = x[j] * x[j], norm = norms[k * d + j];
                        const int clamped = !(norm > (REAL)NORM_EPSILON);
                        const REAL over = 1 / (clamped ? (REAL)NORM_EPSILON : norm);
                        const REAL share = clamped ? 0 : square * over;
                        by_square += e * over * (1 - share) - norm_after[j] - norm_within[j];
                        norm_within[j] += e * over * share;
                    } else {
                        by_square += e;
                    }
                    y[j] = 2 * x[j] * by_square - forward;
                }
            }
            for (long j = 0; j < d; j++) base[j] += within[j], norm_base[j] += norm_within[j];
        }
    }
}
