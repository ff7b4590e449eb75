<%doc>
Rows of elements that indices along the row choose: dst[r][j] = src[r][index[r][j]], or dst[r][index[r][j]] = itself op src[r][j]. CPU.
A work-item owns a range of rows, so nothing collides and contributions arrive in index order. The row that is walked at random
is read in order first, a cache line at a time, where the indices will meet most of its lines: memory likes that better.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="r" file="combine.mako"/>\
<% far = 's' if action == 'get' else 'd' %>\
${w.prelude()}
typedef long I;
% if flat:
typedef ${index}8 clt_index8 __attribute__((aligned(${4 if index == 'int' else 8})));
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
    if (touched) {
      R sum = clt_ld_e(${far});
      for (I j = ${line}; j < touched; j += ${line}) sum += clt_ld_e(${far} + j);
      volatile R kept = sum;
      (void)kept;
    }
% if flat:
    // Every index of a short row is looked at before the first is used: what follows has nothing to ask.
    ulong8 most = 0;
    const I whole = n & -8;
    for (I j = 0; j < whole; j += 8) most = max(most, as_ulong8(convert_long8(*(__global const clt_index8 *)(i0 + j))));
    for (I j = whole; j < n; j++) most = max(most, (ulong8)((ulong)(long)i0[j]));
    if (all(most < (ulong8)((ulong)t0_size))) {
      for (I j = 0; j < whole; j += 8) {
% for k in range(8):
        d[j + ${k}] = s[i0[j + ${k}]];
% endfor
      }
      for (I j = whole; j < n; j++) d[j] = s[i0[j]];
      continue;
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
    for (I j = 0; j < n; j++) {
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
