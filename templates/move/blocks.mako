<%doc>
Copy of many small blocks, each dense on both sides but with its dims in another order: transposes of small matrices.
The source offsets of a block's numbers are computed once for all blocks. CPU: a work-item copies a run of blocks.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
${w.prelude()}
typedef ${I} I;
typedef ${T} T;
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global T *restrict dst, __global const T *restrict src, const I blocks, const I size, const I dst_at, const I src_at
${w.params('p', rank, ['s'])}) {
    I from[${most}];
    for (I j = 0; j < size; ++j) {
        ${w.decode('p', rank, ['s'], 'j')}
        from[j] = p_s_at;
    }
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    const I begin = blocks / parts * part + min(part, (I)(blocks % parts)), end = begin + blocks / parts + (part < blocks % parts);
    __global T *to = dst + dst_at + begin * size;
    __global const T *of = src + src_at + begin * size;
    for (I z = begin; z < end; ++z, to += size, of += size)
        for (I j = 0; j < size; ++j) to[j] = of[from[j]];
}
