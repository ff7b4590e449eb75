<%doc>
Rows made anew from rows that one index sends to them: dst[r] = base[r] + the rows src[i] for which index[i] is r, in the order of i. CPU.
Without `base` rows begin as zeros; `unit` is 0 where one element of src is repeated along each of its rows.
A work-item owns a range of dst's rows: it first lists who is sent to each of them (`lists`: for each row who is first, and for each i who is next),
then makes them one after the other. So each row is written once and read nowhere, past the cache if `streamed`; what it is made of
is asked for `ahead` rows before.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="r" file="combine.mako"/>\
<%
def read(place): return f"*(__global const u_row *)({place})"
many = (16, 4, 1)
%>\
${headers}
${w.prelude()}
typedef long I;
typedef ${T} R;
typedef ${T}${L} V;
typedef V u_row __attribute__((aligned(${size})));
#pragma OPENCL FP_CONTRACT OFF
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global R *restrict dst\
% if base:
, __global const R *restrict base\
% endif
, __global const R *restrict src, __global const ${index} *restrict i0, __global int *restrict lists, __global long *restrict status, const I slot,
                    const I rows, const I width, const I n, const I near\
% if base:
, const I ob\
% endif
, const I os, const I src_row, const I oi0, const I index_step) {
  const I part = get_global_id(0), parts = get_global_size(0), top = rows * part / parts, bottom = rows * (part + 1) / parts;
  const I t0_size = rows, t0_step = 1;
  __global int *restrict heads = lists, *restrict next = lists + rows + part * n;
  status += slot + 4 * part;
  for (I r = top; r < bottom; r++) heads[r] = -1;
  int bad = 0;
  for (I i = n - 1; i >= 0; i--) {
    const I w_i0 = i * index_step;
    I at = 0;
    ${w.lookup_all(1, 'w', 'at', wrap, 'bad')}
    if (at < top || at >= bottom) continue;
    next[i] = heads[at];
    heads[at] = (int)i;
  }
  if (bad) {
    for (I i = 0; i < n; i++) {
      const I w_i0 = i * index_step;
      I at = 0;
      ${w.lookup(1, 'w', 'at', wrap, False, 'continue;', 'i')}
    }
    return;
  }
  for (I r = top; r < bottom; r++) {
    __global R *d = dst + r * width;
% if base:
    __global const R *b = base + ob + r * width;
% endif
    const int first = heads[r];
% if unit:
    const int soon = r + ${ahead} < bottom ? heads[r + ${ahead}] : -1;
    if (soon >= 0) {
      __global const R *s = src + os + soon * src_row;
      for (I j = 0; j < near; j += ${64 // size}) CLT_PREFETCH(s + j);
      const int second = next[soon];
      if (second >= 0) {
        s = src + os + second * src_row;
        for (I j = 0; j < near; j += ${64 // size}) CLT_PREFETCH(s + j);
      }
    }
% endif
    I j = 0;
% for at_once in many:
    for (; j + ${at_once * L} <= width; j += ${at_once * L}) {
% for u in range(at_once):
      V v${u} = ${read(f'b + j + {u * L}') if base else '(V)(0)'};
% endfor
      for (int i = first; i >= 0; i = next[i]) {
        __global const R *s = src + os + i * src_row;
% for u in range(at_once):
        v${u} += ${read(f's + j + {u * L}') if unit else '(V)(*s)'};
% endfor
      }
% for u in range(at_once):
      ${f'CLT_STREAM(v{u}, (__global V *)(d + j + {u * L}));' if streamed else f'*(__global u_row *)(d + j + {u * L}) = v{u};'}
% endfor
    }
% endfor
    for (; j < width; j++) {
      R v = ${'b[j]' if base else '0'};
      for (int i = first; i >= 0; i = next[i]) v += src[os + i * src_row${' + j' if unit else ''}];
      d[j] = v;
    }
  }
}
