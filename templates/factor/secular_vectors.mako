<%doc>
The vectors of a merge as columns of a matrix by which the halves' vectors are to be multiplied, and the merge's values:
first those of the roots, then the deflated ones, whose vectors are columns of the identity; the rotations recorded by
deflate.mako are applied to the rows. A work-item takes V columns of a merge. `squares` (singular values): the right
vectors of all merges come first, then the left ones, to which the first rotation does not apply.
</%doc>\
<%namespace name="merge" file="/factor/merge.mako"/>\
${merge.head()}\
#define ROW(i) (*(__global F *)(x + (i) * step))
% if squares:
#define PART(i) (side ? ((i) ? poles[i] * QUOTIENT(i) : (F)(-1)) : QUOTIENT(i))
% else:
#define PART(i) QUOTIENT(i)
% endif
#define QUOTIENT(i) ((F)(weights[i]) / (FAR((F)(poles[i]), origin) - offset))
__kernel void ${fn}(__global const R *all_poles, __global const R *exact, __global const int *all_places, __global const int *states, __global const R *origins,
                    __global const R *offsets, __global const int *all_turns, __global const R *all_numbers, __global const R *values, ${'__global const R *sizes, ' if squares else ''}__global R *found,
                    __global R *columns, const I count, const I both, const I step, const I blocks) {
    EACH(g, count * blocks${' * 2' if squares else ''}) {
        const I side = g / (count * blocks), z = g / blocks % count, first = g % blocks * ${V}, k = states[2 * z];
        __global const R *poles = all_poles + z * step, *weights = exact + z * step;
        __global const int *places = all_places + z * both, *turns = all_turns + 2 * z * both;
        __global const R *numbers = all_numbers + 2 * z * both;
        __global R *x = columns + (side * count + z) * both * step + first;
        const J rooted = IDS < (J)(k - first);
        const F origin = *(__global const F *)(origins + z * step + first), offset = *(__global const F *)(offsets + z * step + first);
        ## Sum in parts of 32: small numbers added one by one to a large sum lose digits, and the normalised vectors
        ## would grow with each merge.
        F sum = 0;
        for (I i = 0; i < k;) {
            F part = 0;
            for (const I stop = min(i + 32, k); i < stop; ++i) {
                const F q = PART(i);
                part += q * q;
            }
            sum += part;
        }
        const F size = 1 / sqrt(sum);
        for (I i = 0; i < k; ++i) ROW(places[i]) = rooted ? PART(i) * size : (F)(0);
        for (I i = k; i < both; ++i) ROW(places[i]) = IDS == (J)(i - first) ? (F)(1) : (F)(0);
        for (I t = states[2 * z + 1] - 1; t >= side; --t) {
            const R c = numbers[2 * t], s = numbers[2 * t + 1];
            const F low = ROW(turns[2 * t]), high = ROW(turns[2 * t + 1]);
            ROW(turns[2 * t]) = c * low - s * high;
            ROW(turns[2 * t + 1]) = s * low + c * high;
        }
        if (side) continue;
        for (I j = first; j < min(first + ${V}, both); ++j) {
            const R of = origins[z * step + j], more = offsets[z * step + j];
% if squares:
            const R r = sqrt(of * of + more), root = (of == 0 ? r : of + more / (of + r)) * sizes[3 * z + 2];
% else:
            const R root = of + more;
% endif
            found[z * both + j] = j < k ? root : values[z * both + places[j]];
        }
    }
}
