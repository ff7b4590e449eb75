<%doc>
The row-major number of each entry's place, from its coordinates; `bad` is set if a coordinate is outside the sizes.
CPU: a work-item takes a run of entries and has a flag of its own. GPU: a lane takes an entry, and there is one flag,
initially 0.
</%doc>\
typedef ${I} I;
__kernel void ${fn}(__global const long *restrict indices, __global long *restrict keys, __global int *restrict bad,
                    const I count, const I oi, const I along, const I step${''.join(f', const I n{d}' for d in range(rank))}) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    __global const long *from = indices + oi;
    int wrong = 0;
% if gpu:
    for (I e = part; e < count; e += parts) {
% else:
    const I start = count / parts * part + min(part, (I)(count % parts)), stop = start + count / parts + (part < count % parts);
    for (I e = start; e < stop; ++e) {
% endif
        long key = 0;
% for d in range(rank):
        const long v${d} = from[${d} * along + e * step];
        wrong |= (ulong)v${d} >= (ulong)n${d};
        key = key * (long)n${d} + v${d};
% endfor
        keys[e] = key;
    }
% if gpu:
    if (wrong) *bad = 1;
% else:
    bad[part] = wrong;
% endif
}
