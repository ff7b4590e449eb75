<%doc>
The eigenvalues of real symmetric tridiagonal matrices, one after the other at that end of an unreduced block where
convergence is faster, by implicit QL steps with Wilkinson's shift (Dubrulle, Martin and Wilkinson, Numer. Math. 12,
1968; Parlett, "The Symmetric Eigenvalue Problem", ch. 8). A work-item takes a matrix. `diagonal` (n per matrix) is
replaced by the eigenvalues, the off-diagonal `beside` (n) by zeros. `kept`: the plane rotations are recorded, two
columns, cosine and sine each, until a step's no longer fit into `room`; the next launch continues. `state`: the number
of recorded rotations; 0 when all values are found, 1 when not yet, 2 when there is no convergence; and the steps taken.
</%doc>\
<%namespace name="steps" file="/factor/rotation.mako"/>\
typedef ${I} I;
typedef ${R} R;
#define EPSILON ${epsilon}
#define TINY ${tiny}
${steps.rotation()}\
% if kept:
#define KEEP(i, j, c, s) (places[2 * written] = (int)(i), places[2 * written + 1] = (int)(j), numbers[2 * written] = (c), numbers[2 * written + 1] = (s), ++written)
% else:
#define KEEP(i, j, c, s)
% endif
## Access within the current block lo .. hi, mirrored where `turned`: the block is then worked off from its other end.
#define AT(i) (turned ? lo + hi - (i) : (i))
#define D(i) d[AT(i)]
#define E(i) e[turned ? lo + hi - 1 - (i) : (i)]
/* The rotation that makes (a b; b c) diagonal: its eigenvalues, the larger by magnitude first. */
static inline void clt_pair(const R a, const R b, const R c, R *large, R *small, R *cosine, R *sine) {
    const R sum = a + c, difference = a - c, twice = b + b, x = fabs(difference), y = fabs(twice);
    const R more = fmax(x, y), less = fmin(x, y), root = more == 0 ? 0 : more * sqrt(1 + less / more * (less / more));
    const int negative = sum < 0;
    if (sum == 0) {
        *large = (R)0.5f * root, *small = -*large;
    } else {
        *large = (R)0.5f * (negative ? sum - root : sum + root);
        const int first = fabs(a) > fabs(c);
        *small = (first ? a : c) / *large * (first ? c : a) - b / *large * b;
    }
    const int below = difference < 0;
    const R t = below ? difference - root : difference + root;
    if (fabs(t) > y) {
        const R r = -twice / t;
        *sine = 1 / sqrt(1 + r * r), *cosine = r * *sine;
    } else if (y == 0) {
        *cosine = 1, *sine = 0;
    } else {
        const R r = -t / twice;
        *cosine = 1 / sqrt(1 + r * r), *sine = r * *cosine;
    }
    if (negative == below) {
        const R held = *cosine;
        *cosine = -*sine, *sine = held;
    }
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
) {
    for (I z = (I)get_group_id(0); z < count; z += (I)get_num_groups(0)) {
        __global R *d = diagonal + z * n, *e = beside + z * n;
        __global int *state = states + 3 * z;
% if kept:
        __global int *places = all_places + 2 * z * room;
        __global R *numbers = all_numbers + 2 * z * room;
% endif
        I written = 0, next = 0;
        int steps = state[2], left = 0;
        R sum = 0;
        for (I i = 0; i < n; ++i) sum += fabs(d[i]) + (i + 1 < n ? fabs(e[i]) : (R)0);
        if (!isfinite(sum)) left = 2;
        while (next < n && !left) {
            const I lo = next;
            I hi = lo;
            for (; hi + 1 < n; ++hi)
                if (fabs(e[hi]) <= sqrt(fabs(d[hi])) * sqrt(fabs(d[hi + 1])) * EPSILON) {
                    e[hi] = 0;
                    break;
                }
            next = hi + 1;
            const int turned = fabs(d[hi]) < fabs(d[lo]);
            for (I l = lo; l <= hi;) {
% if kept:
                if (room - written < hi - lo) {
                    left = 1;
                    break;
                }
% endif
                I m = l;
                for (; m < hi; ++m) {
                    const R size = fabs(E(m));
                    if (size * size <= EPSILON * EPSILON * fabs(D(m)) * fabs(D(m + 1)) + TINY) {
                        E(m) = 0;
                        break;
                    }
                }
                if (m == l) {
                    ++l;
                    continue;
                }
                if (m == l + 1) {
                    const I i = min(AT(l), AT(m));
                    R large, small, cosine, sine;
                    clt_pair(d[i], e[i], d[i + 1], &large, &small, &cosine, &sine);
                    d[i] = large, d[i + 1] = small, e[i] = 0;
                    KEEP(i, i + 1, cosine, sine);
                    l += 2;
                    continue;
                }
                if (++steps > 30 * n) {
                    left = 2;
                    break;
                }
                const R start = D(l);
                R g = (D(l + 1) - start) / (2 * E(l)), s = 1, c = 1, p = 0;
                g = D(m) - start + E(l) / (g + copysign(sqrt(g * g + 1), g));
                for (I i = m - 1; i >= l; --i) {
                    const R f = s * E(i), b = c * E(i);
                    const R r = clt_rotation(g, f, &c, &s);
                    if (i + 1 < m) E(i + 1) = r;
                    g = D(i + 1) - p;
                    const R more = (D(i) - g) * s + 2 * c * b;
                    p = s * more;
                    D(i + 1) = g + p;
                    g = c * more - b;
                    KEEP(AT(i + 1), AT(i), c, s);
                }
                D(l) -= p;
                E(l) = g;
            }
        }
        state[0] = (int)written, state[1] = left, state[2] = steps;
    }
}
