<%doc>
Out-of-place scatter along rows on a GPU: row r of dst is that of `start`, or zeros, with src[r][q] added (multiplied
...) at index[r][q], in the order of q.
A work-group takes a row into local memory. In each round, of the pending contributions the first one to each place
claims it, by having the largest stamp, and is added. Stamps of later rounds are larger, so claims need not be cleared
in between. Several places may share a claim: that may delay a contribution, but those to one place are still added in
order. After ${ROUNDS} rounds, pending contributions are listed, and each lane adds those of the list that go to its
places. `number`: instead of src, one number, which is written.
Variables: fn dt T action start number I index L N W H ROUNDS: L lanes, N contributions (N / L per lane), W places of a
row, H claims (N at least).
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="r" file="combine.mako"/>\
<%
each, bits = range(max(1, N // L)), N.bit_length() - 1
%>\
${w.prelude()}
typedef ${I} I;
% if number:
typedef ${T} T;
typedef ${T} R;
#define clt_ld_e(p) (*(p))
#define clt_st_e(p, v) (*(p) = (v))
% else:
typedef ${dt.cl} T;
typedef ${dt.reg} R;
${w.element(dt, 'e')}
${r.combine(dt, action)}
% endif
__attribute__((reqd_work_group_size(${L}, 1, 1)))
__kernel void ${fn}(__global T *restrict dst\
% if not number:
, __global const T *restrict src\
% endif
% if start:
, __global const T *restrict start\
% endif
, __global const ${index} *restrict i0, __global long *status, const I slot, const I nc, const I ns, const I t0_size\
% if not number:
, const I os, const I src_row, const I src_unit\
% endif
% if start:
, const I ob\
% endif
, const I oi0\
% if number:
, const ulong lo, const ulong hi\
% endif
) {
% if number:
    const T fill = ${'(T)(lo, hi)' if T == 'ulong2' else '(T)lo'};
% else:
    __local uint claims[${H}];
    __local R listed[${N}];
    __local int left;
% endif
    __local R row[${W}];
    const int lane = (int)get_local_id(0);
    status += slot;
    for (I at = (I)get_group_id(0); at < ns; at += (I)get_num_groups(0)) {
        ## A lane issues all its loads before it uses the first value.
% for n in each:
        const int q${n} = lane + ${n * L}, is${n} = q${n} < nc;
        const long v${n} = is${n} ? (long)i0[oi0 + at * nc + q${n}] : 0;
% if not number:
        R x${n};
        if (is${n}) x${n} = clt_ld_e(src + os + at * src_row + q${n} * src_unit);
% endif
% endfor
% if start:
        __global const T *from = start + ob + at * t0_size;
        int e = lane;
        for (; e + ${3 * L} < t0_size; e += ${4 * L}) { // four loads in flight
            const R ${', '.join(f'm{j} = clt_ld_e(from + e + {j * L})' for j in range(4))};
% for j in range(4):
            row[e + ${j * L}] = m${j};
% endfor
        }
        for (; e < t0_size; e += ${L}) row[e] = clt_ld_e(from + e);
% else:
        for (int e = lane; e < t0_size; e += ${L}) row[e] = (R)(0);
% endif
% if not number:
        for (int e = lane; e < ${H}; e += ${L}) claims[e] = 0;
        if (lane == 0) left = 0;
% endif
        int pending = 0;
% for n in each:
        if (is${n}) {
            if ((ulong)v${n} < (ulong)t0_size) pending |= ${1 << n};
            else if (atomic_cmpxchg((volatile __global int *)status, 0, 1) == 0) {
                status[1] = v${n}; status[2] = 0; status[3] = (long)(at * nc + q${n});
            }
        }
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
% if number:
% for n in each:
        if (pending & ${1 << n}) row[(int)v${n}] = fill;
% endfor
% endif
% if number:
        barrier(CLK_LOCAL_MEM_FENCE);
% else:
        uint round = 1;
        do {
% for n in each:
            if (pending & ${1 << n}) atomic_max(claims + ((uint)v${n} & ${H - 1}), round << ${bits} | (uint)(${N - 1} - q${n}));
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
% for n in each:
            if ((pending & ${1 << n}) && claims[(uint)v${n} & ${H - 1}] == (round << ${bits} | (uint)(${N - 1} - q${n}))) {
                row[(int)v${n}] = clt_combine(row[(int)v${n}], x${n});
                pending &= ~${1 << n};
            }
% endfor
            if (pending) atomic_max(&left, (int)round);
            barrier(CLK_LOCAL_MEM_FENCE);
        } while (left == (int)round && ++round <= ${ROUNDS});
        if (round > ${ROUNDS}) {
% for n in each:
            claims[q${n}] = pending & ${1 << n} ? (uint)v${n} : 0xffffffffu;
            if (pending & ${1 << n}) listed[q${n}] = x${n};
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int q = 0; q < nc; ++q) {
                const uint to = claims[q];
                if (to != 0xffffffffu && (to & ${L - 1}) == (uint)lane) row[to] = clt_combine(row[to], listed[q]);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
% endif
        __global T *to = dst + at * t0_size;
        for (int e = lane; e < t0_size; e += ${L}) clt_st_e(to + e, row[e]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
