<%doc>
Dense blocks, each written `times` times in a row. CPU. A work-item takes pieces of blocks that stay in the first-level
cache, and writes each piece to all its places: if whole blocks were copied, memory would be read as often as written.
Whole vectors are written with non-temporal stores; elements before and after them with plain ones.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%
T, size, L, code = memory.cl, memory.dt.itemsize, memory.lanes, memory.dt.code
%>\
${headers}
typedef long I;
${lane_memory.helpers({code: memory}, L, {(code, 'load'), (code, 'store')})}\
typedef ${T}${L} V;
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global ${T} *restrict dst, __global const ${T} *restrict src, const I blocks, const I n, const I times, const I od, const I os) {
  const I part = get_global_id(0), items = get_global_size(0), pieces = (n + ${piece - 1}) / ${piece}, all = blocks * pieces;
  for (I k = all * part / items; k < all * (part + 1) / items; k++) {
    const I block = k / pieces, begin = k % pieces * ${piece}, end = begin + ${piece} < n ? begin + ${piece} : n;
    __global const ${T} *from = src + os + block * n;
    for (I time = 0; time < times; time++) {
      __global ${T} *to = dst + od + (block * times + time) * n;
      I i = begin;
      const I before = (I)(-((size_t)(to + i) / ${size}) & ${L - 1}), first = before < end - i ? before : end - i;
      if (first) store_${code}(to + i, load_${code}(from + i, (int)first), (int)first);
      for (i += first; i + ${L} <= end; i += ${L}) {
        const V v = *(__global const u_${code} *)(from + i);
        CLT_STREAM(v, (__global V *)(to + i));
      }
      if (i < end) store_${code}(to + i, load_${code}(from + i, (int)(end - i)), (int)(end - i));
    }
  }
}
