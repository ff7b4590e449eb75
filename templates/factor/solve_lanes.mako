<%doc>
Substitution in many small systems at once: replaces X by A^-1 X for triangular A. Each system is one lane of the
vectors; if fewer systems than lanes are left, the last ones are repeated. A work-item owns a run of systems, and solves
one column of X at a time. A is treated as a lower triangle: for an upper one rows and columns are counted from the end.
</%doc>\
<% V = memory.lanes %>\
typedef ${I} I;
typedef ${dt.reg} T;
typedef ${memory.reg} F;
#define AT(i) (upper ? n - 1 - (i) : (i))
#define CLT_WHOLE
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const T *a, __global T *x, const I count, const I n, const I k, const I upper, const I unit,
                    const I a_at, const I a_batch, const I a_row, const I a_col, const I x_at, const I x_batch, const I x_row, const I x_col) {
    __local F low[${most * most}], known[${most}];
    const I parts = (I)get_num_groups(0), part = (I)get_group_id(0);
    const I begin = count / parts * part + min(part, (I)(count % parts)), end = begin + count / parts + (part < count % parts);
    for (I z = begin; z < end; z += ${V}) {
        for (I s = 0; s < ${V}; ++s) {
            __global const T *from = a + a_at + min(z + s, end - 1) * a_batch;
            for (I c = 0; c < n; ++c)
                for (I i = c + unit; i < n; ++i) ((__local T *)low)[(c * n + i) * ${V} + s] = from[AT(i) * a_row + AT(c) * a_col];
        }
        for (I q = 0; q < k; ++q) {
            for (I s = 0; s < ${V}; ++s) {
                __global const T *from = x + x_at + min(z + s, end - 1) * x_batch + q * x_col;
                for (I i = 0; i < n; ++i) ((__local T *)known)[i * ${V} + s] = from[AT(i) * x_row];
            }
            for (I c = 0; c < n; ++c) {
                if (!unit) known[c] /= low[c * n + c];
                for (I i = c + 1; i < n; ++i) known[i] -= low[c * n + i] * known[c];
            }
            for (I s = 0; s < min(end - z, (I)${V}); ++s) {
                __global T *to = x + x_at + (z + s) * x_batch + q * x_col;
                for (I i = 0; i < n; ++i) to[AT(i) * x_row] = ((__local const T *)known)[i * ${V} + s];
            }
        }
    }
}
