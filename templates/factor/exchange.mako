<%doc>
Row exchanges as LAPACK's laswp: rows s and pivots[s] - 1 are swapped, for s of a range in ascending or descending
order. A work-item applies all exchanges to its columns, one column at a time; where matrices are row-major,
${'{lanes}'} columns together.
</%doc>\
typedef ${I} I;
% if not gpu:
typedef uint${lanes * size // 4} U __attribute__((aligned(${size})));
% endif
__kernel void ${fn}(__global ${T} *x, __global const int *pivots, const I count, const I columns, const I begin, const I end, const I backwards,
                    const I x_at, const I x_batch, const I x_row, const I x_col, const I p_at, const I p_batch) {
    const I total = count * columns, parts = (I)get_global_size(0), part = (I)get_global_id(0);
% if gpu:
    for (I q = part; q < total; q += parts) {
% else:
    const I from = total / parts * part + min(part, (I)(total % parts)), to = from + total / parts + (part < total % parts);
    for (I q = from; q < to; ++q) {
% endif
        const I z = q / columns;
        __global ${T} *p = x + x_at + z * x_batch + q % columns * x_col;
        __global const int *rows = pivots + p_at + z * p_batch;
% if not gpu:
        if (x_col == 1 && q % columns + ${lanes} <= columns && q + ${lanes} <= to) {
            for (I s = 0; s < end - begin; ++s) {
                const I i = backwards ? end - 1 - s : begin + s, j = (I)rows[i] - 1;
                __global U *one = (__global U *)(p + i * x_row), *other = (__global U *)(p + j * x_row);
                const U held = *one;
                *one = *other;
                *other = held;
            }
            q += ${lanes} - 1;
            continue;
        }
% endif
        for (I s = 0; s < end - begin; ++s) {
            const I i = backwards ? end - 1 - s : begin + s, j = (I)rows[i] - 1;
            const ${T} held = p[i * x_row];
            p[i * x_row] = p[j * x_row];
            p[j * x_row] = held;
        }
    }
}
