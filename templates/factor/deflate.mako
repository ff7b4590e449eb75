<%doc>
The first step of a merge in divide and conquer: deflation, which needs no root. Values and vectors of two halves of m
rows are known.

`squares` (singular values): two bidiagonal matrices of m - 1 rows and m columns, and the row between them, whose two
elements are in the first one's last column and the other one's first: U (z; D) V^T, where D begins with a 0 and z is
that row in the basis of the halves' right vectors. Each half's last vector belongs to no value; the two give the first
weight and, rotated, the last vector of the whole (Gu and Eisenstat, SIAM J. Matrix Anal. Appl. 16, 1995).
Otherwise (eigenvalues): two tridiagonal matrices and the element e between them are Q (D + rho z z^T) Q^T, where z is
the last row of one half's vectors and the first of the other's (Cuppen, Numer. Math. 36, 1981).

Where an element of z is negligible, or becomes so by a rotation because two of D are equal, the value of D is deflated:
it is final (`states`, `values`, `turns`, `numbers`). The k others are `poles` and `weights`, in ascending order;
`places` says which vector belongs to each, then to the deflated values. A work-item takes a merge. `states`: k, and the
number of rotations; `sizes`: 1 / rho, how far above the last pole its root can be, and the unit of poles and weights.
</%doc>\
typedef ${I} I;
typedef ${R} R;
#define EPSILON ${epsilon}
#define TAKE(i, pole, weight) (poles[k] = (pole), weights[k] = (weight), sum += (weight) * (weight), places[k++] = (int)(i))
#define TURN(i, j, c, s) (turns[2 * turned] = (int)(i), turns[2 * turned + 1] = (int)(j), numbers[2 * turned] = (c), numbers[2 * turned++ + 1] = (s))
% if squares:
## The first pole is 0; the second one kept is at least least / 2, so that the two stay apart.
#define KEEP(i) TAKE(i, k == 1 ? fmax(d[i] * scale, least / 2) : d[i] * scale, z[i])
% else:
#define KEEP(i) TAKE(i, d[i], z[i])
% endif
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global R *values, __global const long *orders, __global const R *vectors, __global const R *beside, __global R *all_poles,
                    __global R *all_weights, __global R *all_z, __global int *all_places, __global int *states, __global R *sizes, __global int *all_turns,
                    __global R *all_numbers, ${'__global const R *diagonal, ' if squares else ''}const I count, const I m, const I step) {
    for (I g = (I)get_group_id(0); g < count; g += (I)get_num_groups(0)) {
        __global R *d = values + g * 2 * m, *z = all_z + g * step, *poles = all_poles + g * step, *weights = all_weights + g * step;
        __global R *numbers = all_numbers + g * 4 * m;
        __global int *places = all_places + g * 2 * m, *turns = all_turns + g * 4 * m;
        __global const long *order = orders + g * 2 * m;
        __global const R *q = vectors + g * 2 * m * m + (m - 1) * m;
        const R e = beside[g * 2 * m + m - 1];
        I k = 0, stay = 2 * m, turned = 0, held = -1, a = 0, b = 0;
        R sum = 0;
% if squares:
        const I most = m - 1;
        const R above = diagonal[g * 2 * m + m - 1], after = e, rho = 1;
        R large = fmax(fabs(above), fabs(after));
% else:
        const I most = m;
        const R above = sqrt((R)0.5f), after = e < 0 ? -above : above, rho = 2 * fabs(e);
        R large = 0;
% endif
        for (I i = 0; i < 2 * m; ++i) {
            z[i] = q[i] * (i < m ? above : after);
% if squares:
            if (i % m < most && z[i] != 0) large = fmax(large, d[i]);
% else:
            if (z[i] != 0) large = fmax(large, fmax(fabs(d[i]), fabs(z[i])));
% endif
        }
% if squares:
        ## Divide by the largest, so that squares neither underflow nor overflow.
        const R unit = large < ${tiny} ? (R)0 : large, scale = unit == 0 ? (R)0 : 1 / unit, least = 16 * EPSILON;
        for (I i = 0; i < 2 * m; ++i) z[i] *= scale;
        const R r = sqrt(z[most] * z[most] + z[m + most] * z[m + most]);
        const int there = r > least;
        TURN(most, m + most, there ? z[most] / r : 1, there ? z[m + most] / r : 0);
        TAKE(most, 0, there ? r : least);
        places[--stay] = (int)(m + most);
% else:
        const R unit = 1, least = 8 * EPSILON * large;
% endif
        while (a + b < 2 * most) {
            const I i = a < most ? (I)order[a] : 0, j = b < most ? m + (I)order[m + b] : 0;
            const int first = b == most || (a < most && d[i] <= d[j]);
            const I next = first ? i : j;
            a += first, b += !first;
            if (rho * fabs(z[next]) <= least) {
                places[--stay] = (int)next;
                continue;
            }
            if (held >= 0) {
                const R r = sqrt(z[held] * z[held] + z[next] * z[next]), c = z[next] / r, s = -z[held] / r, low = d[held], high = d[next];
                if (${'(high - low) * scale' if squares else 'fabs((high - low) * c * s)'} <= least) {
                    z[next] = r;
% if not squares:
                    d[held] = low * c * c + high * s * s, d[next] = low * s * s + high * c * c;
% endif
                    TURN(held, next, c, s);
                    places[--stay] = (int)held;
                } else {
                    KEEP(held);
                }
            }
            held = next;
        }
        if (held >= 0) KEEP(held);
        states[2 * g] = (int)k, states[2 * g + 1] = (int)turned;
        sizes[3 * g] = 1 / rho, sizes[3 * g + 1] = rho * sum * (1 + 8 * EPSILON), sizes[3 * g + 2] = unit;
    }
}
