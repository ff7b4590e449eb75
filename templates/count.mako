<%doc>
How often each place occurs. CPU schedule: in `count` each work-item fills tables of its own, four in turn if they are
small, so that increments for equal neighbours do not depend on each other; `sum` adds the tables. GPU schedule: `zero`,
then `count` with atomics in one table, then `sum`; small tables are first filled in local memory by each work-group,
which has fewer conflicts of atomics. A table's last entry counts elements that are no place.
</%doc>\
typedef ${I} I;
% if not gpu or room:
__attribute__((reqd_work_group_size(${group if gpu else 1}, 1, 1)))
% endif
% if action == 'sum':
__kernel void ${fn}(__global const uint *tables, __global long *out, __global long *rest, const I bins, const I count) {
% else:
__kernel void ${fn}(__global const ${src.cl if src else 'uint'} *src, __global uint *tables, const I n, const I origin, const I bins, const I ways) {
% endif
    const I parts = (I)get_global_size(0), part = (I)get_global_id(0), width = bins + 1;
% if action == 'sum':
    for (I b = part; b < width; b += parts) {
        long total = 0;
        for (I t = 0; t < count; ++t) total += (long)tables[t * width + b];
        if (b < bins) out[b] = total; else rest[0] = total;
    }
% elif action == 'zero':
    for (I b = part; b < width; b += parts) tables[b] = 0;
% else:
<% at = '((ulong)src[origin + {0}] < (ulong)bins ? (I)src[origin + {0}] : bins)' %>\
% if gpu and room:
    __local uint table[${room}];
    const I lid = (I)get_local_id(0), lanes = ${group};
    for (I b = lid; b < width; b += lanes) table[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 4
    for (I i = part; i < n; i += parts) atomic_inc((volatile __local uint *)table + ${at.format('i')});
    barrier(CLK_LOCAL_MEM_FENCE);
    for (I b = lid; b < width; b += lanes)
        if (table[b]) atomic_add((volatile __global uint *)tables + b, table[b]);
% elif gpu:
    for (I i = part; i < n; i += parts) atomic_inc((volatile __global uint *)tables + ${at.format('i')});
% else:
    const I rest = n % parts, first = n / parts * part + (part < rest ? part : rest), last = first + n / parts + (part < rest);
    const I step = ways > 1 ? width : 0;
    __global uint *t0 = tables + part * ways * width, *t1 = t0 + step, *t2 = t1 + step, *t3 = t2 + step;
    for (I b = 0; b < ways * width; ++b) t0[b] = 0;
    I i = first;
    for (; i + 4 <= last; i += 4) {
% for k in range(4):
        ++t${k}[${at.format(f'i + {k}')}];
% endfor
    }
    for (; i < last; ++i) ++t0[${at.format('i')}];
% endif
% endif
}
