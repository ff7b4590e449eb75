<%doc>
Scans along one dim of rows, on a GPU: ${kind}. Pieces are rows, or `chunks` equal parts of each; `totals` writes only
the state at the end of a piece, and the second launch starts each piece from the states before it, so the result does
not depend on timing.
Rows: a work-group scans a piece in tiles, of which a lane takes ${items} adjacent elements, and reads a tile while it
works on the one before; where the order does not matter, the state at the end of a piece is computed with coalesced
reads.
Columns (the dim is not the last): a lane scans a piece, and its neighbours those of neighbouring rows. `pair`: float32
sums carry a second float with the rounding error. ${R}: double for products, or these carry a second float, too.
</%doc>\
<%namespace name="state" file="/scan/state.mako"/>\
<%namespace name="w" file="/walk.mako"/>\
<%
ranked = kind in ('cummax', 'cummin')
names = ['s', 'd'] + (['x'] if ranked else [])
staged = ranked or not totals
%>\
${headers}
${state.memory(R)}
${state.functions(R, 'I', '', pair)}\
#define LANES ${lanes}
#define ITEMS ${items}
#define TILE ${lanes * items}
#define CLT_AT(p) ((uint)(p) + (uint)(p) / ITEMS) // padded: lanes that take ITEMS neighbours each meet no bank conflicts
__attribute__((reqd_work_group_size(${lanes}, 1, 1)))
__kernel void ${fn}(${state.params(columns, rank)}) {
    const I step = (length + chunks - 1) / chunks;
% if columns:
    for (I t = (I)get_global_id(0); t < rows * chunks * width; t += (I)get_global_size(0)) {
        const I piece = t / width, column = t % width, row = piece / chunks, chunk = piece % chunks;
        const I begin = min(length, (I)(chunk * step)), end = min(length, (I)(begin + step));
        if (begin >= end${' || chunk + 1 == chunks' if totals else ''}) continue;
        ${w.decode('p', rank, names, 'row')}
        __global const ${src_dt.cl} *from = src + os + p_s_at + column * ss;
        const I to = od + p_d_at + column * ds${", xo = ox + p_x_at + column * xs" if ranked else ""};
        I i = begin;
        S carry = clt_lift(clt_read(from + i * sl), i);
% if not totals:
        if (chunk > 0) {
            S before = states[row * chunks * width + column];
            for (I c = 1; c < chunk; ++c) before = clt_join(before, states[(row * chunks + c) * width + column]);
            carry = clt_join(before, carry);
        }
        ${state.put('carry', 'to + i * dl', 'xo + i * xl')}
% endif
        ++i;
        ## Four loads precede the stores, so that they need not wait for these.
% for many in (4, 1):
        for (; i + ${many} <= end; i += ${many}) {
            const R ${', '.join(f'x{k} = clt_read(from + (i + {k}) * sl)' for k in range(many))};
% for k in range(many):
            carry = clt_join(carry, clt_lift(x${k}, i + ${k}));
% if not totals:
            ${state.put('carry', f'to + (i + {k}) * dl', f'xo + (i + {k}) * xl')}
% endif
% endfor
        }
% endfor
% if totals:
        states[t] = carry;
% endif
    }
% else:
<%def name="scan()">
            shared_state[lane] = mine;
            barrier(CLK_LOCAL_MEM_FENCE);
            int now = 0;
            for (int gap = 1; gap < LANES; gap <<= 1) {
                mine = shared_state[now + lane];
                if (lane >= gap) mine = clt_join(shared_state[now + lane - gap], mine);
                now ^= LANES;
                shared_state[now + lane] = mine;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
</%def>\
    const int lane = (int)get_local_id(0);
    __local S shared_state[${2 * lanes}];
% if staged:
    __local R held[${lanes * (items + 1)}];
% endif
% if ranked and not totals:
    __local I held_at[${lanes * (items + 1)}];
% endif
    for (I piece = (I)get_group_id(0); piece < rows * chunks; piece += (I)get_num_groups(0)) {
        const I row = piece / chunks, chunk = piece % chunks;
        const I begin = min(length, (I)(chunk * step)), end = min(length, (I)(begin + step));
        if (begin >= end${' || chunk + 1 == chunks' if totals else ''}) continue;
        ${w.decode('p', rank, names, 'row')}
        __global const ${src_dt.cl} *from = src + os + p_s_at;
        const I to = od + p_d_at${", xo = ox + p_x_at" if ranked else ""};
        R y[ITEMS];
<%def name="read(tile)">
        _Pragma("unroll") for (int j = 0; j < ITEMS; ++j) {
            const I i = ${tile} + lane + j * LANES;
            if (i < end) y[j] = clt_read(from + i * sl);
        }
</%def>\
        ${read('begin')}
        S carry = clt_lift((R)0, 0);
        int carried = 0;
% if not totals:
        if (chunk > 0) {
            ## Each lane joins adjacent states of the parts before; a scan over lanes joins their results.
            const I share = (chunk + LANES - 1) / LANES, last = min(chunk, (I)((lane + 1) * share));
            I c = min(lane * share, (I)(chunk - 1));
            S mine = states[row * chunks + c];
            for (++c; c < last; ++c) mine = clt_join(mine, states[row * chunks + c]);
            ${scan()}
            carry = shared_state[now + (int)((chunk + share - 1) / share) - 1];
            carried = 1;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
% endif
% if not staged:
        ## Only the last state is wanted, and the order does not matter: lanes read elements LANES apart.
        S mine = clt_lift(y[0], 0);
        _Pragma("unroll") for (int j = 1; j < ITEMS; ++j) if (begin + lane + j * LANES < end) mine = clt_join(mine, clt_lift(y[j], 0));
        for (I tile = begin + TILE; tile < end; tile += TILE) {
            ${read('tile')}
            _Pragma("unroll") for (int j = 0; j < ITEMS; ++j) if (tile + lane + j * LANES < end) mine = clt_join(mine, clt_lift(y[j], 0));
        }
        ${scan()}
        if (lane == LANES - 1) states[piece] = mine;
        barrier(CLK_LOCAL_MEM_FENCE);
% else:
        for (I tile = begin; tile < end; tile += TILE) {
            ## live: lanes that have elements of the tile; the last of these may have fewer than the others.
            const int count = (int)min((I)TILE, (I)(end - tile)), live = (count + ITEMS - 1) / ITEMS;
            const int first = lane * ITEMS, own = max(0, min(ITEMS, count - first));
            _Pragma("unroll") for (int j = 0; j < ITEMS; ++j) held[CLT_AT(lane + j * LANES)] = y[j];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (tile + TILE < end) { // the next tile's loads are in flight meanwhile
                ${read('tile + TILE')}
            }
            R x[ITEMS];
            _Pragma("unroll") for (int j = 0; j < ITEMS; ++j) x[j] = j < own ? held[lane * (ITEMS + 1) + j] : (R)0;
            S mine = clt_lift(x[0], tile + first);
            _Pragma("unroll") for (int j = 1; j < ITEMS; ++j) if (j < own) mine = clt_join(mine, clt_lift(x[j], tile + first + j));
            ${scan()}
% if not totals:
            S total = carry;
            int some = carried;
            if (lane > 0) {
                const S before = shared_state[now + lane - 1];
                total = some ? clt_join(total, before) : before;
                some = 1;
            }
            _Pragma("unroll") for (int j = 0; j < ITEMS; ++j) if (j < own) {
                const S next = clt_lift(x[j], tile + first + j);
                total = some ? clt_join(total, next) : next;
                some = 1;
                held[lane * (ITEMS + 1) + j] = clt_value(total);
% if ranked:
                held_at[lane * (ITEMS + 1) + j] = total.at;
% endif
            }
% endif
            const S whole = shared_state[now + live - 1];
            carry = carried ? clt_join(carry, whole) : whole;
            carried = 1;
            barrier(CLK_LOCAL_MEM_FENCE);
% if not totals:
            _Pragma("unroll") for (int j = 0; j < ITEMS; ++j) {
                const int k = lane + j * LANES;
                const I i = tile + k;
                if (k < count) {
                    clt_st_dst(dst + to + i * dl, ${'' if R == dt.reg else f'convert_{dt.reg}'}(held[CLT_AT(k)]));
                    ${"indices[xo + i * xl] = (long)held_at[CLT_AT(k)];" if ranked else ""}
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
% endif
        }
% if totals:
        if (lane == 0) states[piece] = carry;
% endif
% endif
    }
% endif
}
