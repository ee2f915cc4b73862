/* Primal scores: what is done to some tokens before and after the matrix products, a pass each. */

/* From products Wᵀz (H, T, s): norms ‖z‖ and scores Wᵀz / ‖z‖; Σ of their squares over the tokens that the mask has. */
void NAME(primal_finish)(const Rows *parts, const long *count, const REAL *restrict z, const REAL *restrict product,
                         const unsigned char *restrict mask, REAL *restrict scores, REAL *restrict norms,
                         double *restrict energy) {
    EACH_PART {
        const Rows *r = parts + part;
        REAL sums[r->directions];
        for (long h = r->first_head; h < r->end_head; h++) {
            for (long j = 0; j < r->directions; j++) sums[j] = 0;
            for (long t = 0; t < r->tokens; t++) {
                const REAL *restrict x = z + h * r->head + t * r->token;
                const REAL *restrict from = product + (h * r->tokens + t) * r->directions;
                REAL *restrict to = scores + h * r->score_head + t * r->score_token;
                REAL square = 0;
                for (long j = 0; j < r->width; j++) square += x[j] * x[j];
                REAL norm = SQRT(square);
                if (norm < (REAL)NORM_EPSILON) norm = (REAL)NORM_EPSILON;
                norms[h * r->norm_head + t] = norm;
                const REAL inverse = 1 / norm, counted = !mask || mask[t];
                for (long j = 0; j < r->directions; j++) {
                    to[j] = from[j] * inverse;
                    sums[j] += counted * to[j] * to[j];
                }
            }
            for (long j = 0; j < r->directions; j++) energy[h * 2 * r->directions + j] += sums[j];
        }
    }
}

/* ∂e / ‖z‖ (H, T, s), and ⟨∂e, e⟩ / ‖z‖² (H, T); ∂e is `grad` and, with `by_energy`, twice the score times that. */
void NAME(primal_start)(const Rows *parts, const long *count, const REAL *restrict grad,
                        const REAL *restrict by_energy, const unsigned char *restrict mask,
                        const REAL *restrict scores, const REAL *restrict norms, REAL *restrict by_product,
                        REAL *restrict radial) {
    EACH_PART {
        const Rows *r = parts + part;
        for (long h = r->first_head; h < r->end_head; h++)
            for (long t = 0; t < r->tokens; t++) {
                const REAL *restrict g = grad + h * r->score_head + t * r->score_token;
                const REAL *restrict e = scores + h * r->score_head + t * r->score_token;
                const REAL *restrict twice = by_energy ? by_energy + h * 2 * r->directions : e;
                REAL *restrict to = by_product + (h * r->tokens + t) * r->directions;
                const REAL norm = norms[h * r->norm_head + t], inverse = 1 / norm;
                const REAL counted = by_energy && (!mask || mask[t]) ? 2 : 0;
                REAL along = 0;
                for (long j = 0; j < r->directions; j++) {
                    const REAL by_score = g[j] + counted * e[j] * twice[j];
                    along += by_score * e[j];
                    to[j] = by_score * inverse;
                }
                radial[h * r->tokens + t] = norm > (REAL)NORM_EPSILON ? along * inverse * inverse : 0;
            }
    }
}

/* ∂z: `by_vectors` (H, T, d) less z times `radial`. */
void NAME(primal_combine)(const Rows *parts, const long *count, const REAL *restrict z,
                          const REAL *restrict by_vectors, const REAL *restrict radial, REAL *restrict by_z,
                          const long *by_head, const long *by_token) {
    EACH_PART {
        const Rows *r = parts + part;
        for (long h = r->first_head; h < r->end_head; h++)
            for (long t = 0; t < r->tokens; t++) {
                const REAL *restrict x = z + h * r->head + t * r->token;
                const REAL *restrict from = by_vectors + (h * r->tokens + t) * r->width;
                REAL *restrict to = by_z + h * *by_head + t * *by_token;
                const REAL along = radial[h * r->tokens + t];
                for (long j = 0; j < r->width; j++) to[j] = from[j] - x[j] * along;
            }
    }
}
