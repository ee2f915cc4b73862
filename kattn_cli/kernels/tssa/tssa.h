/* TSSA, each function one pass over w. Sums over tokens are (sums, B, C) or (sums, B, H) in double. */

static void NAME(add)(double *restrict sums, const REAL *restrict part, long count) {
    for (long c = 0; c < count; c++) sums[c] += part[c];
}

/* Σ w² of each feature. */
void NAME(tssa_norms)(const Slice *parts, const long *count, const REAL *restrict w, double *restrict norms) {
    EACH_PART {
        const Slice *s = parts + part;
        const long C = s->heads * s->width;
        REAL part[C];
        for (long b = s->first_sample; b < s->end_sample; b++)
            for (long start = s->first_token; start < s->end_token; start += BLOCK) {
                const long end = start + BLOCK < s->end_token ? start + BLOCK : s->end_token;
                for (long c = 0; c < C; c++) part[c] = 0;
                for (long i = start; i < end; i++) {
                    const REAL *restrict x = w + (b * s->tokens + i) * C;
                    for (long c = 0; c < C; c++) part[c] += x[c] * x[c];
                }
                NAME(add)(norms + (s->sums * s->batch + b) * C, part, C);
            }
    }
}

/* Energies and Π (B, N, H); Σ Π w² and, over the tokens that the mask has, Σ Π. */
void NAME(tssa_membership)(const Slice *parts, const long *count, const REAL *restrict w, const REAL *restrict eta,
                           const unsigned char *restrict mask, const REAL *restrict inverse_norms,
                           REAL *restrict energy, REAL *restrict membership, double *restrict moment,
                           double *restrict mass) {
    EACH_PART {
        const Slice *s = parts + part;
        const long H = s->heads, d = s->width, C = H * d;
        REAL part[C], part_mass[H];
        for (long b = s->first_sample; b < s->end_sample; b++)
            for (long start = s->first_token; start < s->end_token; start += BLOCK) {
                const long end = start + BLOCK < s->end_token ? start + BLOCK : s->end_token;
                for (long c = 0; c < C; c++) part[c] = 0;
                for (long h = 0; h < H; h++) part_mass[h] = 0;
                for (long i = start; i < end; i++) {
                    const long token = b * s->tokens + i;
                    const REAL *restrict x = w + token * C, *restrict inverse = inverse_norms + b * C;
                    REAL *restrict e = energy + token * H, *restrict p = membership + token * H;
                    REAL most = -INFINITY, total = 0;
                    for (long h = 0; h < H; h++) {
                        REAL sum = 0;
                        for (long c = h * d; c < (h + 1) * d; c++) sum += x[c] * x[c] * inverse[c];
                        e[h] = sum;
                        if (!(eta[h] * sum <= most)) most = eta[h] * sum;
                    }
                    for (long h = 0; h < H; h++) total += p[h] = EXP(eta[h] * e[h] - most);
                    for (long h = 0; h < H; h++) {
                        p[h] /= total;
                        if (!mask || mask[token]) part_mass[h] += p[h];
                        for (long c = h * d; c < (h + 1) * d; c++) part[c] += p[h] * x[c] * x[c];
                    }
                }
                NAME(add)(moment + (s->sums * s->batch + b) * C, part, C);
                NAME(add)(mass + (s->sums * s->batch + b) * H, part_mass, H);
            }
    }
}

/* −w Π D. */
void NAME(tssa_output)(const Slice *parts, const long *count, const REAL *restrict w, const REAL *restrict membership,
                       const REAL *restrict shrinkage, REAL *restrict out) {
    EACH_PART {
        const Slice *s = parts + part;
        const long H = s->heads, d = s->width, C = H * d;
        for (long b = s->first_sample; b < s->end_sample; b++)
            for (long i = s->first_token; i < s->end_token; i++) {
                const long token = b * s->tokens + i;
                const REAL *restrict x = w + token * C, *restrict shrink = shrinkage + b * C;
                REAL *restrict y = out + token * C;
                for (long h = 0; h < H; h++) {
                    const REAL p = -membership[token * H + h];
                    for (long c = h * d; c < (h + 1) * d; c++) y[c] = x[c] * p * shrink[c];
                }
            }
    }
}

/* Σ_features G w D (B, N, H), and Σ_tokens Π G w. */
void NAME(tssa_backward_products)(const Slice *parts, const long *count, const REAL *restrict w, const REAL *restrict grad,
                                  const REAL *restrict membership, const REAL *restrict shrinkage,
                                  REAL *restrict product, double *restrict weighted) {
    EACH_PART {
        const Slice *s = parts + part;
        const long H = s->heads, d = s->width, C = H * d;
        REAL part[C];
        for (long b = s->first_sample; b < s->end_sample; b++)
            for (long start = s->first_token; start < s->end_token; start += BLOCK) {
                const long end = start + BLOCK < s->end_token ? start + BLOCK : s->end_token;
                for (long c = 0; c < C; c++) part[c] = 0;
                for (long i = start; i < end; i++) {
                    const long token = b * s->tokens + i;
                    const REAL *restrict x = w + token * C, *restrict g = grad + token * C;
                    const REAL *restrict shrink = shrinkage + b * C;
                    for (long h = 0; h < H; h++) {
                        const REAL p = membership[token * H + h];
                        REAL sum = 0;
                        for (long c = h * d; c < (h + 1) * d; c++) {
                            const REAL both = g[c] * x[c];
                            sum += both * shrink[c];
                            part[c] += both * p;
                        }
                        product[token * H + h] = sum;
                    }
                }
                NAME(add)(weighted + (s->sums * s->batch + b) * C, part, C);
            }
    }
}

/* ∂E (B, N, H), Σ_tokens ∂E w², and ∂η. `by_moment` (B, C) and `by_mass` (B, H): ∂L/∂(Σ Π w²) and ∂L/∂(Σ Π). */
void NAME(tssa_backward_energy)(const Slice *parts, const long *count, const REAL *restrict w, const REAL *restrict eta,
                                const unsigned char *restrict mask, const REAL *restrict energy,
                                const REAL *restrict membership, const REAL *restrict product,
                                const REAL *restrict by_moment, const REAL *restrict by_mass,
                                REAL *restrict by_energy, double *restrict spread, double *restrict by_eta) {
    EACH_PART {
        const Slice *s = parts + part;
        const long H = s->heads, d = s->width, C = H * d;
        REAL part[C], part_eta[H];
        for (long b = s->first_sample; b < s->end_sample; b++)
            for (long start = s->first_token; start < s->end_token; start += BLOCK) {
                const long end = start + BLOCK < s->end_token ? start + BLOCK : s->end_token;
                for (long c = 0; c < C; c++) part[c] = 0;
                for (long h = 0; h < H; h++) part_eta[h] = 0;
                for (long i = start; i < end; i++) {
                    const long token = b * s->tokens + i;
                    const REAL *restrict x = w + token * C, *restrict p = membership + token * H;
                    const REAL *restrict slope = by_moment + b * C;
                    REAL *restrict change = by_energy + token * H;
                    REAL mean = 0;
                    for (long h = 0; h < H; h++) {
                        REAL sum = 0;
                        for (long c = h * d; c < (h + 1) * d; c++) sum += x[c] * x[c] * slope[c];
                        change[h] = sum - product[token * H + h];
                        if (!mask || mask[token]) change[h] += by_mass[b * H + h];
                        mean += p[h] * change[h];
                    }
                    for (long h = 0; h < H; h++) {
                        const REAL by_logit = p[h] * (change[h] - mean);
                        part_eta[h] += by_logit * energy[token * H + h];
                        const REAL by_this = change[h] = eta[h] * by_logit;
                        for (long c = h * d; c < (h + 1) * d; c++) part[c] += by_this * x[c] * x[c];
                    }
                }
                NAME(add)(spread + (s->sums * s->batch + b) * C, part, C);
                NAME(add)(by_eta + (s->sums * s->batch + b) * H, part_eta, H);
            }
    }
}

/* ∂w = −G Π D + 2 w (Π ∂m + ∂E / ‖w‖² + ∂‖w‖²). */
void NAME(tssa_backward_input)(const Slice *parts, const long *count, const REAL *restrict w, const REAL *restrict grad,
                               const REAL *restrict membership, const REAL *restrict shrinkage,
                               const REAL *restrict by_moment, const REAL *restrict by_energy,
                               const REAL *restrict inverse_norms, const REAL *restrict by_norms,
                               REAL *restrict by_w) {
    EACH_PART {
        const Slice *s = parts + part;
        const long H = s->heads, d = s->width, C = H * d;
        for (long b = s->first_sample; b < s->end_sample; b++)
            for (long i = s->first_token; i < s->end_token; i++) {
                const long token = b * s->tokens + i;
                const REAL *restrict x = w + token * C, *restrict g = grad + token * C;
                const REAL *restrict shrink = shrinkage + b * C, *restrict slope = by_moment + b * C;
                const REAL *restrict inverse = inverse_norms + b * C, *restrict norms = by_norms + b * C;
                REAL *restrict y = by_w + token * C;
                for (long h = 0; h < H; h++) {
                    const REAL p = membership[token * H + h], e = by_energy[token * H + h];
                    for (long c = h * d; c < (h + 1) * d; c++)
                        y[c] = 2 * x[c] * (p * slope[c] + e * inverse[c] + norms[c]) - g[c] * p * shrink[c];
                }
            }
    }
}
