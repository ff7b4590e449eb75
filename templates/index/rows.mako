<%doc>
Combines rows into rows that one index operand chooses: dst[index[i]] = dst[index[i]] op src[i], or src[i] where they
`move`. CPU.
`unit`: rows of src are dense, else each is one element repeated.
A work-item owns a range of dst's rows by a slice of its columns and walks all indices: nothing collides, contributions
to an element arrive in index order, and the division of work changes no bit. The first `near` elements of rows are
prefetched `ahead` indices before they are used, if `ahead` is not 0.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="r" file="combine.mako"/>\
<%
V = memory.reg
def value(loaded): return "same" if not unit else f"clt_scale(alpha, {loaded})" if scale else loaded
%>\
${headers}
${w.prelude()}
${lane_memory.helpers({dt.code: memory}, L, {(dt.code, 'load'), (dt.code, 'store')})}\
typedef long I;
typedef ${V} R;
${r.combine(dt, action)}
${r.scaling(dt, scale)}
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global ${dt.cl} *restrict dst, __global const ${dt.cl} *restrict src\
% if scale:
, __global const ${dt.cl} *factor\
% endif
, __global const ${index} *restrict i0, __global long *restrict status, const I slot, const I n, const I width, const I ranges, const I slices,
                    const I od, const I os, const I oi0, const I t0_size, const I dst_step, const I src_step, const I index_step,
                    const I near) {
  const I t0_step = 1;
  const I part = get_global_id(0), range = part / slices, slice = part % slices, vectors = (width + ${L - 1}) / ${L};
  const I top = t0_size * range / ranges, bottom = t0_size * (range + 1) / ranges;
  const I left = vectors * slice / slices * ${L}, right = min(width, vectors * (slice + 1) / slices * ${L});
  const I asked = min(right, left + near);
  status += slot + 4 * part;
% if scale:
  const R alpha = (R)(${scalar.scalar_load('factor')});
% endif
  for (I i = 0; i < n; i++) {
    const I w_i0 = i * index_step;
% if ahead:
    if (i + ${ahead} < n) {
      const I next = (I)i0[oi0 + w_i0 + ${ahead} * index_step];
      if (next >= top && next < bottom) {
        for (I j = left; j < asked; j += ${64 // dt.itemsize}) {
          CLT_PREFETCH(dst + od + next * dst_step + j);
% if unit:
          CLT_PREFETCH(src + os + (i + ${ahead}) * src_step + j);
% endif
        }
      }
    }
% endif
    I at = 0;
    ${w.lookup(1, 'w', 'at', wrap, False, 'continue;', 'i')}
    if (at < top || at >= bottom) continue;
    __global ${dt.cl} *d = dst + od + at * dst_step;
    __global const ${dt.cl} *s = src + os + i * src_step;
% if not unit:
    const R same = ${'clt_scale(alpha, (R)(' if scale else '(R)('}${scalar.scalar_load('s')}${'))' if scale else ')'};
% endif
    I j = left;
    for (; j + ${L} <= right; j += ${L}) {
      const R old = ${memory.vector_load('d + j')}, sum = clt_combine(old, ${value(memory.vector_load('s + j'))});
      ${memory.vector_store('d + j', 'sum')};
    }
    if (j < right) {
      const int m = (int)(right - j);
      store_${dt.code}(d + j, clt_combine(load_${dt.code}(d + j, m), ${value(f'load_{dt.code}(s + j, m)')}), m);
    }
  }
}
