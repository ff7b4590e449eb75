<%doc>
Rows of elements that indices along the row choose: dst[r][j] = src[r][index[r][j]], or dst[r][index[r][j]] = itself op src[r][j]. CPU.
A work-item owns a range of rows, so nothing collides and contributions arrive in index order. The row that is walked at random
is read in order first, a cache line at a time, where the indices will meet most of its lines: memory likes that better.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="r" file="combine.mako"/>\
<%
far = 's' if action == 'get' else 'd'
block = 64
def at(j): return f'clt_wrapped(i0[{j}], t0_size)' if wrap else f'i0[{j}]'
%>\
${w.prelude()}
typedef long I;
% if flat:
typedef ${index}8 clt_index8 __attribute__((aligned(${4 if index == 'int' else 8})));
% if wrap:
static inline long clt_wrapped(const long v, const long size) { return v + ((v >> 63) & size); }
% endif
% endif
% if action == 'get':
typedef ${T} E;
typedef ${T} R;
static inline R clt_ld_e(__global const E *p) { return *p; }
% else:
typedef ${dt.cl} E;
typedef ${dt.reg} R;
${w.element(dt, 'e')}
${r.combine(dt, action)}
${r.scaling(dt, scale)}
% endif
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global E *restrict dst, __global const E *restrict src\
% if scale:
, __global const E *factor\
% endif
, __global const ${index} *restrict indices, __global long *restrict status, const I slot, const I rows, const I n, const I touched,
                    const I od, const I os, const I oi, const I t0_size, const I t0_step, const I dst_row, const I src_row, const I index_row,
                    const I dst_step, const I src_step, const I index_step) {
  const I part = get_global_id(0), parts = get_global_size(0), first = rows * part / parts, last = rows * (part + 1) / parts;
  status += slot + 4 * part;
% if scale:
  const R alpha = clt_ld_e(factor);
% endif
  for (I row = first; row < last; row++) {
    __global E *d = dst + od + row * dst_row;
    __global const E *s = src + os + row * src_row;
    __global const ${index} *i0 = indices + oi + row * index_row;
    const I oi0 = 0;
    I begin = 0;
    if (touched) {
      // Volatile, or else compilers gather numbers of many lines into a vector, one after the other.
      for (I j = 0; j < touched; j += ${line}) (void)*(volatile __global const uchar *)(${far} + j);
    }
% if flat:
    // Every index of a block is looked at before the first is used: what follows has nothing to ask. Where one is bad, all that is
    // left is looked up one by one.
    while (begin < n) {
      const I end = begin + ${block} < n ? begin + ${block} : n, whole = begin + ((end - begin) & -8);
      ulong8 most = 0;
      for (I j = begin; j < whole; j += 8) {
        long8 v = convert_long8(*(__global const clt_index8 *)(i0 + j));
% if wrap:
        v += (v >> 63) & (long8)(t0_size);
% endif
        most = as_ulong8(v) > most ? as_ulong8(v) : most;
      }
      const ulong4 most4 = most.lo > most.hi ? most.lo : most.hi;
      const ulong2 most2 = most4.lo > most4.hi ? most4.lo : most4.hi;
      ulong top = most2.x > most2.y ? most2.x : most2.y;
      for (I j = whole; j < end; j++) {
        const ulong v = (ulong)${at('j')};
        top = v > top ? v : top;
      }
      if (top >= (ulong)t0_size) break;
      for (I j = begin; j < whole; j += 8) {
% for k in range(8):
        d[j + ${k}] = *(volatile __global const E *)(s + ${at(f'j + {k}')});
% endfor
      }
      for (I j = whole; j < end; j++) d[j] = s[${at('j')}];
      begin = end;
    }
% elif action == 'get':
    int bad = t0_size == 0;
    if (!bad) {
      for (I j = 0; j < n; j++) {
        const I w_i0 = j * index_step;
        I at = 0;
        ${w.lookup_all(1, 'w', 'at', wrap, 'bad')}
        d[j * dst_step] = s[at];
      }
    }
    if (!bad) continue;
% endif
    for (I j = begin; j < n; j++) {
      const I w_i0 = j * index_step;
      I at = 0;
      ${w.lookup(1, 'w', 'at', wrap, False, 'continue;', 'row * n + j')}
% if action != 'get':
      const R v = clt_ld_e(s + j * src_step);
      clt_st_e(d + at, clt_combine(clt_ld_e(d + at), ${'clt_scale(alpha, v)' if scale else 'v'}));
% endif
    }
  }
}
