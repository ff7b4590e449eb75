<%doc>
The singular values of real bidiagonal matrices, upper or `lower`, by QR steps, with a shift or, where a shift would
destroy the accuracy of small values, without (Demmel and Kahan, "Accurate singular values of bidiagonal matrices", SIAM
J. Sci. Stat. Comput. 11, 1990). A work-item takes a matrix. `diagonal` (n per matrix) is replaced by the singular
values, of either sign, the off-diagonal `beside` (n) by zeros. `kept`: the plane rotations are recorded, two columns,
then cosine and sine for the right vectors and for the left ones, until a step's no longer fit into `room`; the next
launch continues. `state`: the number of recorded rotations; 0 when all values are found, 1 when not yet, 2 when there
is no convergence; and the steps taken, each counted as the number of columns it passes.
</%doc>\
<%namespace name="steps" file="/factor/rotation.mako"/>\
typedef ${I} I;
typedef ${R} R;
#define EPSILON ${epsilon}
#define TINY ${tiny}
#define BOUND ${bound}
${steps.rotation()}\
% if kept:
#define KEEP(i, j, c, s, cu, su) do { \
    places[2 * written] = (int)(i), places[2 * written + 1] = (int)(j); \
    numbers[4 * written] = (c), numbers[4 * written + 1] = (s), numbers[4 * written + 2] = (cu), numbers[4 * written + 3] = (su); \
    ++written; \
} while (0)
% else:
#define KEEP(i, j, c, s, cu, su)
% endif
## Access within the current block lo .. hi, mirrored where `turned`: the block is then worked off from its other end.
#define AT(i) (turned ? lo + hi - (i) : (i))
#define D(i) d[AT(i)]
#define E(i) e[turned ? lo + hi - 1 - (i) : (i)]
/* The singular values of (f g; 0 h), the smaller one first. */
static inline void clt_sizes(const R f, const R g, const R h, R *small, R *large) {
    const R less = fmin(fabs(f), fabs(h)), more = fmax(fabs(f), fabs(h)), beside = fabs(g);
    *small = 0;
    if (less == 0) {
        *large = fmax(more, beside) == 0 ? 0 : hypot(more, beside);
        return;
    }
    const R p = 1 + less / more, q = (more - less) / more;
    if (beside < more) {
        const R u = beside / more * (beside / more), c = 2 / (sqrt(p * p + u) + sqrt(q * q + u));
        *small = less * c, *large = more / c;
    } else {
        const R u = more / beside;
        if (u == 0) {
            *small = less * more / beside, *large = beside;
            return;
        }
        const R c = 1 / (sqrt(1 + p * u * (p * u)) + sqrt(1 + q * u * (q * u)));
        *small = 2 * (less * c) * u, *large = beside / (c + c);
    }
}
## The rotations that make (f g; 0 h) diagonal: cr, sr rotate its columns, cl, sl its rows.
static inline void clt_triangle(R f, const R g, R h, R *small, R *large, R *cr, R *sr, R *cl, R *sl) {
    const int exchanged = fabs(h) > fabs(f);
    const R first = f, last = h;
    if (exchanged) f = last, h = first;
    const R x = fabs(f), y = fabs(h), beside = fabs(g);
    R c, s, c_left, s_left;
    if (beside == 0) {
        *small = y, *large = x;
        c = c_left = 1, s = s_left = 0;
    } else if (beside > x && x / beside < EPSILON) {
        *large = beside, *small = y > 1 ? x / (beside / y) : x / beside * y;
        c_left = 1, s_left = h / g, s = 1, c = f / g;
    } else {
        const R difference = x - y, l = difference == x ? 1 : difference / x, m = g / f, t = 2 - l;
        const R mm = m * m, root = sqrt(t * t + mm), other = l == 0 ? fabs(m) : sqrt(l * l + mm), a = (R)0.5f * (root + other);
        *small = y / a, *large = x * a;
        R u;
        if (mm == 0)
            u = l == 0 ? copysign((R)2, f) * copysign((R)1, g) : g / copysign(difference, f) + m / t;
        else
            u = (m / (root + t) + m / (other + l)) * (1 + a);
        const R norm = sqrt(u * u + 4);
        c = 2 / norm, s = u / norm;
        c_left = (c + s * m) / a, s_left = h / f * s / a;
    }
    *cr = exchanged ? s_left : c, *sr = exchanged ? c_left : s;
    *cl = exchanged ? s : c_left, *sl = exchanged ? c : s_left;
    R sign;
    if (beside > x)
        sign = copysign((R)1, *sr) * copysign((R)1, *cl) * copysign((R)1, g);
    else if (exchanged)
        sign = copysign((R)1, *sr) * copysign((R)1, *sl) * copysign((R)1, last);
    else
        sign = copysign((R)1, *cr) * copysign((R)1, *cl) * copysign((R)1, first);
    *large = copysign(*large, sign);
    *small = copysign(*small, sign * copysign((R)1, first) * copysign((R)1, last));
}
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global R *diagonal, __global R *beside, __global int *states\
% if kept:
, __global int *all_places, __global R *all_numbers\
% endif
, const I count, const I n\
% if kept:
, const I room\
% endif
, const I lower) {
    for (I z = (I)get_group_id(0); z < count; z += (I)get_num_groups(0)) {
        __global R *d = diagonal + z * n, *e = beside + z * n;
        __global int *state = states + 3 * z;
% if kept:
        __global int *places = all_places + 2 * z * room;
        __global R *numbers = all_numbers + 4 * z * room;
% endif
        I written = 0, end = n - 1, old_lo = -1, old_hi = -1;
        int left = 0, turned = 0;
        long steps = state[2];
        R sum = 0;
        for (I i = 0; i < n; ++i) sum += fabs(d[i]) + (i + 1 < n ? fabs(e[i]) : (R)0);
        if (!isfinite(sum)) left = 2;
        if (lower)  // rotations from the left make a lower bidiagonal matrix upper bidiagonal
            for (I i = 0; i + 1 < n; ++i) {
                R c, s;
                d[i] = clt_rotation(d[i], e[i], &c, &s);
                e[i] = s * d[i + 1];
                d[i + 1] = c * d[i + 1];
                KEEP(i, i + 1, (R)1, (R)0, c, s);
            }
        // Below `threshold` a number beside the diagonal changes no singular value by more than BOUND times itself.
        R least = fabs(d[0]), run = least;
        for (I i = 1; i < n && least > 0; ++i) {
            run = fabs(d[i]) * (run / (run + fabs(e[i - 1])));
            least = fmin(least, run);
        }
        const R threshold = fmax(BOUND * (least / sqrt((R)n)), (R)6 * n * n * TINY);
        while (end > 0 && !left) {
            I hi = end, lo = end;
            R largest = fabs(d[hi]);
            for (; lo > 0; --lo) {
                const R size = fabs(e[lo - 1]);
                if (size <= threshold) {
                    e[lo - 1] = 0;
                    break;
                }
                largest = fmax(largest, fmax(fabs(d[lo - 1]), size));
            }
            if (lo == hi) {
                --end;
                continue;
            }
% if kept:
            if (room - written < hi - lo) {
                left = 1;
                break;
            }
% endif
            if (lo + 1 == hi) {
                R small, large, cr, sr, cl, sl;
                clt_triangle(d[lo], e[lo], d[hi], &small, &large, &cr, &sr, &cl, &sl);
                d[lo] = large, e[lo] = 0, d[hi] = small;
                KEEP(lo, hi, cr, sr, cl, sl);
                end -= 2;
                continue;
            }
            if (lo > old_hi || hi < old_lo || old_hi < 0) turned = fabs(d[lo]) < fabs(d[hi]);
            old_lo = lo, old_hi = hi;
            // Numbers beside the diagonal that may be dropped, and a bound from below for the smallest singular value.
            if (fabs(E(hi - 1)) <= BOUND * fabs(D(hi))) {
                E(hi - 1) = 0;
                continue;
            }
            R mu = fabs(D(lo)), smallest = mu;
            I i = lo;
            for (; i < hi; ++i) {
                if (fabs(E(i)) <= BOUND * mu) break;
                mu = fabs(D(i + 1)) * (mu / (mu + fabs(E(i))));
                smallest = fmin(smallest, mu);
            }
            if (i < hi) {
                E(i) = 0;
                continue;
            }
            R shift = 0;
            if (n * BOUND * (smallest / largest) > fmax((R)EPSILON, (R)0.01f * BOUND)) {
                R large;
                if (turned)
                    clt_sizes(d[lo], e[lo], d[lo + 1], &shift, &large);
                else
                    clt_sizes(d[hi - 1], e[hi - 1], d[hi], &shift, &large);
                const R start = fabs(D(lo));
                if (start > 0 && shift / start * (shift / start) < EPSILON) shift = 0;
            }
            steps += hi - lo;
            if (steps > (long)6 * n * n) {
                left = 2;
                break;
            }
            if (shift == 0) {
                R c = 1, s = 0, c_before = 1, s_before = 0;
                for (I i = lo; i < hi; ++i) {
                    const R r = clt_rotation(D(i) * c, E(i), &c, &s);
                    if (i > lo) E(i - 1) = s_before * r;
                    D(i) = clt_rotation(c_before * r, D(i + 1) * s, &c_before, &s_before);
                    if (turned)
                        KEEP(AT(i), AT(i + 1), c_before, s_before, c, s);
                    else
                        KEEP(AT(i), AT(i + 1), c, s, c_before, s_before);
                }
                const R last = D(hi) * c;
                D(hi) = last * c_before;
                E(hi - 1) = last * s_before;
            } else {
                R f = (fabs(D(lo)) - shift) * (copysign((R)1, D(lo)) + shift / D(lo)), g = E(lo);
                for (I i = lo; i < hi; ++i) {
                    R c, s, c_other, s_other;
                    const R r = clt_rotation(f, g, &c, &s);
                    if (i > lo) E(i - 1) = r;
                    f = c * D(i) + s * E(i);
                    E(i) = c * E(i) - s * D(i);
                    g = s * D(i + 1);
                    D(i + 1) = c * D(i + 1);
                    D(i) = clt_rotation(f, g, &c_other, &s_other);
                    f = c_other * E(i) + s_other * D(i + 1);
                    D(i + 1) = c_other * D(i + 1) - s_other * E(i);
                    if (i + 1 < hi) {
                        g = s_other * E(i + 1);
                        E(i + 1) = c_other * E(i + 1);
                    }
                    if (turned)
                        KEEP(AT(i), AT(i + 1), c_other, s_other, c, s);
                    else
                        KEEP(AT(i), AT(i + 1), c, s, c_other, s_other);
                }
                E(hi - 1) = f;
            }
            if (fabs(E(hi - 1)) <= threshold) E(hi - 1) = 0;
        }
        state[0] = (int)written, state[1] = left, state[2] = (int)min(steps, (long)INT_MAX);
    }
}
