<%doc>
Coordinates of places by their numbers, row-major: those of the sorted keys at which runs start. CPU: a work-item takes a stretch of places and
divides once for each line of the last dim that it comes to. GPU: a lane takes a place.
</%doc>\
typedef ${I} I;
__kernel void ${fn}(__global const long *restrict keys, __global const long *restrict starts, __global long *restrict indices,
                    const I count, const I ok, const I os${''.join(f', const I n{d}' for d in range(rank))}) {
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
% if gpu:
    for (I p = part; p < count; p += parts) {
        long key = keys[ok + (I)starts[os + p]];
% for d in reversed(range(1, rank)):
        indices[${d} * count + p] = key % (long)n${d};
        key /= (long)n${d};
% endfor
        indices[p] = key;
    }
% else:
    const I start = count / parts * part + min(part, (I)(count % parts)), stop = start + count / parts + (part < count % parts);
% for d in range(rank - 1):
    long v${d} = 0;
% endfor
    long begin = ${f'-(long)n{rank - 1}' if rank > 1 else '0'}; // of the line
    for (I p = start; p < stop; ++p) {
        const long key = keys[ok + starts[os + p]];
% if rank > 1:
        if (key - begin >= (long)n${rank - 1}) {
            long line = key / (long)n${rank - 1};
            begin = line * (long)n${rank - 1};
% for d in reversed(range(1, rank - 1)):
            v${d} = line % (long)n${d};
            line /= (long)n${d};
% endfor
            v0 = line;
        }
% endif
% for d in range(rank - 1):
        indices[${f'{d} * count + ' if d else ''}p] = v${d};
% endfor
        indices[${f'{rank - 1} * count + ' if rank > 1 else ''}p] = key - begin;
    }
% endif
}
