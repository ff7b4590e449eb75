<%doc>
Copies the rows of src that an index operand chooses: dst[i] = src[index[i]], rows of at least ${L} dense elements. CPU.
A work-item owns a range of dst's rows, and prefetches the first `near` elements of a row `ahead` rows before it copies
them, if `ahead` is not 0.
`streamed`: non-temporal stores of aligned vectors. The last vector of a row overlaps the one before if the width is no
multiple of a vector.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
${w.prelude()}
${headers}
typedef long I;
typedef ${T}${L} V __attribute__((aligned(${size})));
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global ${T} *restrict dst, __global const ${T} *restrict src, __global const ${index} *restrict i0, __global long *restrict status,
                    const I slot, const I n, const I width, const I od, const I os, const I oi0, const I t0_size, const I t0_step, const I dst_step,
                    const I index_step, const I near) {
  const I part = get_global_id(0), parts = get_global_size(0), first = n * part / parts, last = n * (part + 1) / parts;
  status += slot + 4 * part;
  for (I i = first; i < last; i++) {
    const I w_i0 = i * index_step;
% if ahead:
    if (i + ${ahead} < last) {
      __global const ${T} *next = src + os + (I)i0[oi0 + w_i0 + ${ahead} * index_step] * t0_step;
      for (I j = 0; j < near; j += ${64 // size}) CLT_PREFETCH(next + j);
    }
% endif
    I from = os;
    ${w.lookup(1, 'w', 'from', wrap, False, 'continue;', 'i')}
    __global const ${T} *s = src + from;
    __global ${T} *d = dst + od + i * dst_step;
    I j = 0;
% if streamed:
    for (; j < width; j += ${L}) {
      const ${T}${L} v = *(__global const V *)(s + j);
      CLT_STREAM(v, (__global ${T}${L} *)(d + j));
    }
% else:
    for (; j + ${L} <= width; j += ${L}) *(__global V *)(d + j) = *(__global const V *)(s + j);
    if (j < width) *(__global V *)(d + width - ${L}) = *(__global const V *)(s + width - ${L});
% endif
  }
}
