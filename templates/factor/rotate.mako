<%doc>
Applies recorded plane rotations to pairs of columns, (x y) -> (c x + s y, c y - s x), in order, in batches. Matrices
are column-major: first, for all batch elements, those for the first cosine and sine of each record, then those for the
second ones if a record has four numbers. A work-item applies all of a matrix's rotations to ${'{K}'} vectors of rows
(on a GPU a lane, to one row); a rotation's second column, which mostly is the next one's first, stays in registers.
Products of many small sines soon are denormal where the identity had zeros: these are flushed to zero.
</%doc>\
<%
vectors = range(1 if gpu else K)
%>\
${headers}\
typedef ${I} I;
typedef ${R} R;
typedef ${R}${V if V > 1 else ''} F;
typedef F __attribute__((aligned(${itemsize}))) U;
#define PUT(j, f) do { __global U *p = (__global U *)(x + (j) * step); ${' '.join(f'p[{k}] = f##{k};' for k in vectors)} } while (0)
#define GET(j, f) do { __global const U *p = (__global const U *)(x + (j) * step); ${' '.join(f'f##{k} = p[{k}];' for k in vectors)} } while (0)
#define CLT_WHOLE
__kernel void ${fn}(__global R *columns, __global const int *states, __global const int *all_places, __global const R *all_numbers, const I count, const I n,
                    const I step, const I blocks, const I room, const I many) {
    CLT_FLUSH;
    for (I g = (I)get_group_id(0); g < count * blocks * many / 2; g += (I)get_num_groups(0)) {
        const I side = g / (count * blocks), z = g / blocks % count, total = states[3 * z];
% if gpu:
        const I row = g % blocks * ${lanes} + (I)get_local_id(0);
        if (row >= n) continue;
% else:
        const I row = g % blocks * ${V * K};
% endif
        __global R *x = columns + (side * count + z) * n * step + row;
        __global const int *places = all_places + 2 * z * room;
        __global const R *numbers = all_numbers + many * z * room + 2 * side;
        if (!total) continue;
        F ${', '.join(f'h{k}, y{k}' for k in vectors)};
        I held = places[0];
        GET(held, h);
        for (I t = 0; t < total; ++t) {
            const I i = places[2 * t], j = places[2 * t + 1];
            const F c = numbers[many * t], s = numbers[many * t + 1];
            if (i != held) {
                PUT(held, h);
                GET(i, h);
            }
            GET(j, y);
% for k in vectors:
            const F new${k} = c * h${k} + s * y${k};
            h${k} = c * y${k} - s * h${k};
            y${k} = new${k};
% endfor
            PUT(i, y);
            held = j;
        }
        PUT(held, h);
    }
    CLT_FLUSH_END;
}
