<%doc>
Moves elements between a strided region and one whose offset index operands add to, on a GPU.
get: dst[p] = src[p + sum index_k[p] * step_k];  set: dst[p + sum ...] = src[p] or a scalar. No index operand: a strided
copy or fill.
Each of a group's ${L} lanes takes ${U} elements: all its index loads are issued before the first index is used, then
all loads of elements.
An element has the width of T: it may be several adjacent elements, if these are adjacent in source and destination and
share their indices.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%
k = len(index)
names = ['d'] + ([] if scalar else ['s']) + [f'i{j}' for j in range(k)]
swing = 's' if side == 'get' else 'd'
UI = 'uint' if I == 'int' else 'ulong'
%>\
${w.prelude()}
typedef ${I} I;
typedef ${T} T;
__attribute__((reqd_work_group_size(${L}, 1, 1)))
__kernel void ${fn}(__global T *restrict dst\
% if not scalar:
, __global const T *restrict src\
% endif
% for j, t in enumerate(index):
, __global const ${t} *restrict i${j}\
% endfor
% if k:
, __global long *restrict status, const I slot\
% endif
, const I n, const I od\
% if not scalar:
, const I os\
% endif
% for j in range(k):
, const I oi${j}, const I t${j}_size, const I t${j}_step\
% endfor
${w.params('p', rank, names)}\
% if scalar:
, const ulong lo, const ulong hi\
% endif
) {
% if scalar:
    union { ulong word[2]; T value; } pun;
    pun.word[0] = lo; pun.word[1] = hi;
    const T fill = pun.value;
% endif
% if k:
    status += slot;
% endif
    const I stride = (I)get_num_groups(0) * ${U * L};
    for (I first = (I)get_group_id(0) * ${U * L}; first < n;) {
% for u in range(U):
        const I e${u} = first + (I)get_local_id(0) + ${u * L};
        int on${u} = e${u} < n;
        ${UI} q${u} = (${UI})(on${u} ? e${u} : n - 1);
% for d in reversed(range(1, rank)):
        const I a${u}_${d} = (I)(q${u} % (${UI})p_n${d});
        q${u} /= (${UI})p_n${d};
% endfor
        const I a${u}_0 = (I)q${u};
        I xd${u} = od + ${" + ".join(f"a{u}_{d} * p_d{d}" for d in range(rank))};
% if not scalar:
        I xs${u} = os + ${" + ".join(f"a{u}_{d} * p_s{d}" for d in range(rank))};
% endif
% for j in range(k):
        const long raw${u}_${j} = (long)i${j}[oi${j} + ${" + ".join(f"a{u}_{d} * p_i{j}{d}" for d in range(rank))}];
% endfor
% endfor
% for u in range(U):
% for j in range(k):
        {
            long v = raw${u}_${j};
% if wrap:
            v += v < 0 ? (long)t${j}_size : 0;
% endif
            if ((ulong)v < (ulong)t${j}_size) x${swing}${u} += (I)v * t${j}_step;
            else if (on${u}) {
                on${u} = 0;
                if (atomic_cmpxchg((volatile __global int *)status, 0, 1) == 0) {
                    status[1] = raw${u}_${j}; status[2] = ${j}; status[3] = (long)e${u};
                }
            }
        }
% endfor
% endfor
% if scalar:
% for u in range(U):
        if (on${u}) dst[xd${u}] = fill;
% endfor
% else:
        T ${', '.join(f'v{u}' for u in range(U))};
% for u in range(U):
        if (on${u}) v${u} = src[xs${u}];
% endfor
% for u in range(U):
        if (on${u}) dst[xd${u}] = v${u};
% endfor
% endif
        if (n - first <= stride) break;
        first += stride;
    }
}
