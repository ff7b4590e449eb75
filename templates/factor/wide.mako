<%doc>
Transforms upper bidiagonal blocks of m - 1 rows and m columns, given as rows of `diagonal` and `beside` (m each), into
square lower bidiagonal ones (d, e: m - 1) and a column of zeros, by rotations of neighbouring columns (`numbers`:
cosine and sine). A work-item takes a block.
`back`: the rotations are applied to right vectors, columns [blocks, m, m]. A work-item takes a column.
</%doc>\
<%namespace name="steps" file="/factor/rotation.mako"/>\
typedef ${I} I;
typedef ${R} R;
% if back:
__kernel void ${fn}(__global const R *vectors, __global const R *numbers, __global R *turned, const I count, const I m) {
    for (I g = (I)get_global_id(0); g < count * m; g += (I)get_global_size(0)) {
        __global const R *x = vectors + g / m * m * m + g % m;
        __global R *y = turned + g / m * m * m + g % m;
        __global const R *turns = numbers + g / m * (m - 1) * 2;
        R next = x[(m - 1) * m];
        for (I i = m - 2; i >= 0; --i) {
            const R c = turns[2 * i], s = turns[2 * i + 1], own = x[i * m];
            y[(i + 1) * m] = s * own + c * next;
            next = c * own - s * next;
        }
        y[0] = next;
    }
}
% else:
#define EPSILON ${epsilon}
#define TINY ${tiny}
${steps.rotation()}\
__kernel void ${fn}(__global const R *diagonal, __global const R *beside, __global R *d, __global R *e, __global R *numbers, const I count, const I m) {
    for (I g = (I)get_global_id(0); g < count; g += (I)get_global_size(0)) {
        R own = diagonal[g * m];
        for (I i = 0; i + 1 < m; ++i) {
            const I at = g * (m - 1) + i;
            const R next = i + 2 < m ? diagonal[g * m + i + 1] : (R)0;
            R c, s;
            d[at] = clt_rotation(own, beside[g * m + i], &c, &s);
            e[at] = s * next, own = c * next;
            numbers[2 * at] = c, numbers[2 * at + 1] = s;
        }
    }
}
% endif
