<%doc>
Coordinates of places from their row-major numbers: the sorted keys at which runs of equal keys start. CPU: a work-item
takes a run of places and divides only once for each line of the last dim that it enters; a work-item that is `alone`
also finds where runs start, and writes their number after the starts. GPU: a lane takes a place.
</%doc>\
typedef ${I} I;
__kernel void ${fn}(__global const long *restrict keys, __global ${'' if alone else 'const '}long *restrict starts, __global long *restrict indices,
                    const I ${'all' if alone else 'count'}, const I ok, const I os${''.join(f', const I n{d}' for d in range(rank))}) {
% if gpu:
    for (I p = (I)get_global_id(0); p < count; p += (I)get_global_size(0)) {
        long key = keys[ok + (I)starts[os + p]];
% for d in reversed(range(1, rank)):
        indices[${d} * count + p] = key % (long)n${d};
        key /= (long)n${d};
% endfor
        indices[p] = key;
    }
% else:
% if alone:
    starts += os;
    I count = 0;
    for (I e = 0; e < all; ++e) {
        starts[count] = e;
        count += e == 0 || keys[ok + e] != keys[ok + e - 1];
    }
    starts[all] = count;
    const I start = 0, stop = count;
% else:
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0);
    const I start = count / parts * part + min(part, (I)(count % parts)), stop = start + count / parts + (part < count % parts);
    starts += os;
% endif
% for d in range(rank - 1):
    long v${d} = 0;
% endfor
    long begin = ${f'-(long)n{rank - 1}' if rank > 1 else '0'}; // of the line
    for (I p = start; p < stop; ++p) {
        const long key = keys[ok + starts[p]];
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
