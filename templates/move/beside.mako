<%doc>
Rows of ${parts} dense sources side by side: each row of the result is a row of every source, one after another. CPU. A
work-item makes a contiguous stretch of the result, which may begin and end within a row; copied source by source,
writes would have gaps.
streamed: whole cache lines are written with non-temporal stores; elements before and after them in a source's part of a
row with plain ones.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%
T, size, L, code = memory.cl, memory.dt.itemsize, memory.lanes, memory.dt.code
%>\
${headers}
typedef long I;
${lane_memory.helpers({code: memory}, L, {(code, 'load'), (code, 'store')})}\
typedef ${T}${L} V;
static inline void copy(__global ${T} *restrict to, __global const ${T} *restrict from, const I n) {
  I i = 0;
% if streamed:
  const I first = min(n, (I)(-((size_t)to / ${size}) & ${L - 1}));
  if (first) store_${code}(to, load_${code}(from, (int)first), (int)first);
  for (i = first; i + ${L} <= n; i += ${L}) { const V v = *(__global const u_${code} *)(from + i); CLT_STREAM(v, (__global V *)(to + i)); }
% else:
  for (; i + ${L} <= n; i += ${L}) *(__global u_${code} *)(to + i) = *(__global const u_${code} *)(from + i);
% endif
  if (i < n) store_${code}(to + i, load_${code}(from + i, (int)(n - i)), (int)(n - i));
}
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global ${T} *restrict dst${''.join(f', __global const {T} *restrict src{k}' for k in range(parts))}
, const I total, const I width, const I od${''.join(f', const I o{k}, const I n{k}' for k in range(parts))}) {
  const I part = get_global_id(0), items = get_global_size(0), lines = (total + ${64 // size - 1}) / ${64 // size};
  const I last = min(lines * (part + 1) / items * ${64 // size}, total);
  I at = lines * part / items * ${64 // size};
  if (at >= last) return;
  I row = at / width, skip = at % width;
  for (; at < last; row++) {
% for k in range(parts):
    if (skip < n${k}) {
      const I n = min(n${k} - skip, last - at);
      copy(dst + od + at, src${k} + o${k} + row * n${k} + skip, n);
      at += n, skip = 0;
    } else skip -= n${k};
% endfor
  }
}
