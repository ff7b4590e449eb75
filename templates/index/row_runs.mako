<%doc>
Reduces along rows of few contributions, each with an index of its own; GPU schedule, one kernel. A work-group takes B
rows of up to N contributions into local memory and sorts them by integers of destination and position: as all keys
differ, a sorting network is stable (bitonic, two of its steps between barriers). The lane at the first contribution of
a run adds up the run, in order. A bad index is noted and sorted last, as missing contributions are.
Variables: fn dt action I rank_c rank_s index wrap L N B; B * N is four times L, or eight.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="r" file="combine.mako"/>\
<%
names = ['d', 's', 'i0']
bits, total = N.bit_length() - 1, B * N
each = range(total // L)
def row(e): return f'first + {e} / {N}' if B > 1 else 'first'
def begin(e): return f'({e} & {-N}) + ' if B > 1 else ''
%>\
${w.prelude()}
typedef ${I} I;
typedef ${dt.cl} T;
typedef ${dt.reg} R;
${w.element(dt, 'e')}
${r.combine(dt, action)}
#define CLT_NONE 0xffffffffu
#define CLT_ORDER(a, b) { const uint less = min(a, b), more = max(a, b); a = up ? less : more; b = up ? more : less; }
__attribute__((reqd_work_group_size(${L}, 1, 1)))
__kernel void ${fn}(__global T *dst, __global const T *src\
, __global const ${index[0]} *i0, __global long *status, const I slot, const I nc, const I ns, const I od, const I os\
, const I oi0, const I t0_size, const I t0_step${w.params('c', rank_c, names)}${w.params('s', rank_s, names)}) {
    __local uint keys[${total}];
    __local R values[${total}];
    const int lane = get_local_id(0);
    status += slot;
    for (I first = (I)get_group_id(0) * ${B}; first < ns; first += (I)get_num_groups(0) * ${B}) {
        ## A lane issues all its loads before it uses the first value.
% for n in each:
        const int e${n} = lane + ${n * L}, q${n} = e${n} & ${N - 1}, is${n} = q${n} < nc && ${row(f'e{n}')} < ns;
        long v${n} = 0;
        R x${n};
        if (is${n}) {
            ${w.decode('c', rank_c, names, f'q{n}')}
            ${w.decode('s', rank_s, names, row(f'e{n}'))}
            v${n} = (long)i0[oi0 + c_i0_at + s_i0_at];
            x${n} = clt_ld_e(src + os + c_s_at + s_s_at);
        }
% endfor
% for n in each:
        {
            uint key = CLT_NONE;
            if (is${n}) {
% if wrap:
                v${n} += v${n} < 0 ? (long)t0_size : 0;
% endif
                if (v${n} >= 0 && v${n} < (long)t0_size) key = (uint)v${n} << ${bits} | (uint)q${n};
                else {
                    I ignored = 0;
                    ${w.decode('c', rank_c, names, f'q{n}')}
                    ${w.decode('s', rank_s, names, row(f'e{n}'))}
                    const I x_i0 = c_i0_at + s_i0_at;
                    ${w.lookup(1, 'x', 'ignored', wrap, True, '', f'({row(f"e{n}")}) * nc + q{n}')}
                }
                values[e${n}] = x${n};
            }
            keys[e${n}] = key;
        }
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
% for level in range(1, bits + 1):
% if level % 2:
        for (int p = lane; p < ${total // 2}; p += ${L}) {
            const int i = (p & ${-(1 << level - 1)}) * 2 | (p & ${(1 << level - 1) - 1}), up = ${f'(i & {1 << level}) == 0' if level < bits else '1'};
            uint a = keys[i], b = keys[i + ${1 << level - 1}];
            CLT_ORDER(a, b)
            keys[i] = a;
            keys[i + ${1 << level - 1}] = b;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
% for h in [1 << s for s in range(level - 2 - level % 2, -1, -2)]:
        for (int p = lane; p < ${total // 4}; p += ${L}) {
            const int i = (p & ${-h}) * 4 | (p & ${h - 1}), up = ${f'(i & {1 << level}) == 0' if level < bits else '1'};
            uint a = keys[i], b = keys[i + ${h}], c = keys[i + ${2 * h}], d = keys[i + ${3 * h}];
            CLT_ORDER(a, c)
            CLT_ORDER(b, d)
            CLT_ORDER(a, b)
            CLT_ORDER(c, d)
            keys[i] = a;
            keys[i + ${h}] = b;
            keys[i + ${2 * h}] = c;
            keys[i + ${3 * h}] = d;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% endfor
% endfor
        for (int t = lane; t < ${total}; t += ${L}) {
            const uint own = keys[t], to = own >> ${bits};
            if (own == CLT_NONE || ((t & ${N - 1}) && keys[t - 1] >> ${bits} == to)) continue;
            R acc = values[${begin('t')}(int)(own & ${N - 1})];
            for (int u = t + 1; (u & ${N - 1}) && keys[u] >> ${bits} == to; ++u)
                acc = clt_combine(acc, values[${begin('t')}(int)(keys[u] & ${N - 1})]);
            ${w.decode('s', rank_s, names, row('t'))}
            __global T *place = dst + od + s_d_at + (I)to * t0_step;
            clt_st_e(place, clt_combine(clt_ld_e(place), acc));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
