<%doc>
Gather or reduction along rows: dst[r][j] = src[r][index[r][j]], or dst[r][index[r][j]] = itself op src[r][j]. CPU.
A work-item owns a range of rows, so nothing collides and contributions arrive in index order. If the indices touch most
cache lines of the row that is accessed at random (`touched`: its elements, else 0), the next row is prefetched in order
meanwhile, which takes less time than random misses.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="b" file="blocks.mako"/>\
<%namespace name="r" file="combine.mako"/>\
<%
far, far_row, ask = ('s', 'src_row', 'CLT_PREFETCH') if action == 'get' else ('d', 'dst_row', 'CLT_PREFETCH_TO_WRITE')
block = b.attr.block
def at(j): return f'clt_wrapped(i0[{j}], t0_size)' if wrap else f'i0[{j}]'
%>\
${headers}
${w.prelude()}
typedef long I;
% if flat:
${b.checks(index, wrap)}
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
  const I asked = ${b.share('touched', 'n', line)};
  status += slot + 4 * part;
% if scale:
  const R alpha = clt_ld_e(factor);
% endif
  for (I row = first; row < last; row++) {
    __global E *d = dst + od + row * dst_row;
    __global const E *s = src + os + row * src_row;
    __global const ${index} *i0 = indices + oi + row * index_row;
    const I oi0 = 0;
    if (row == first) { for (I k = 0; k < touched; k += ${line}) ${ask}(${far} + k); }
    __global const E *soon = ${far} + (row + 1 < last ? ${far_row} : 0);
    I begin = 0, next = 0;
% if flat:
    ## All indices of a block are checked before the first is used, so that the loop has no branches. If one is bad, the
    ## remaining elements are taken one by one with `lookup`.
    while (begin < n) {
      const I end = begin + ${block} < n ? begin + ${block} : n, whole = begin + ((end - begin) & -8);
      if (clt_bad(i0 + begin, end - begin, t0_size)) break;
      ${b.ask_share(ask, line)}
      for (I j = begin; j < whole; j += 8) {
        ## Volatile, as compilers would otherwise make a vector of the eight numbers with gather instructions, which
        ## load one line after the other.
% for k in range(8):
        d[j + ${k}] = *(volatile __global const E *)(s + ${at(f'j + {k}')});
% endfor
      }
      for (I j = whole; j < end; j++) d[j] = s[${at('j')}];
      begin = end;
    }
% elif action == 'get':
    int bad = t0_size == 0;
    while (!bad && begin < n) {
      const I end = begin + ${block} < n ? begin + ${block} : n;
      ${b.ask_share(ask, line)}
      for (; begin < end; begin++) {
        const I w_i0 = begin * index_step;
        I at = 0;
        ${w.lookup_all(1, 'w', 'at', wrap, 'bad')}
        d[begin * dst_step] = s[at];
      }
    }
    if (!bad) continue;
    begin = 0;
% endif
    while (begin < n) {
      const I end = begin + ${block} < n ? begin + ${block} : n;
% if action != 'get':
      ${b.ask_share(ask, line)}
% endif
      for (; begin < end; begin++) {
        const I w_i0 = begin * index_step;
        I at = 0;
        ${w.lookup(1, 'w', 'at', wrap, False, 'continue;', 'row * n + begin')}
% if action != 'get':
        const R v = clt_ld_e(s + begin * src_step);
        clt_st_e(d + at, clt_combine(clt_ld_e(d + at), ${'clt_scale(alpha, v)' if scale else 'v'}));
% endif
      }
    }
  }
}
