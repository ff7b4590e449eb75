<%doc>
Out-of-place scatter along rows: dst[r] = base[r], then dst[r][index[r][j]] = src[r][j], or itself op src[r][j]. CPU.
Without `base` rows begin as zeros.
A work-item owns a range of rows, so contributions arrive in index order. Each row is made in local memory, which lies
in the first-level cache, and is written once: dst is not read, with non-temporal stores (`streamed`) not even its cache
lines. The next row of `base` is prefetched meanwhile.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="b" file="blocks.mako"/>\
<%namespace name="r" file="combine.mako"/>\
<%
V = f'{T}{L}'
block = b.attr.block
def vector(space): return f'{space} u_row'
def put(at, j): return f"line[{at}] = {f'({T})value' if scalar else f's[({j}) * src_step]' if action == 'move' else f'clt_combine(line[{at}], s[({j}) * src_step])'};"
%>\
${headers}
${w.prelude()}
typedef long I;
typedef ${V} u_row __attribute__((aligned(${size})));
${b.checks(index, False)}
% if action != 'move':
typedef ${T} R;
${r.combine(dt, action)}
% endif
#define CLT_WHOLE
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global ${T} *restrict dst\
% if base:
, __global const ${T} *restrict base\
% endif
\
% if not scalar:
, __global const ${T} *restrict src\
% endif
, __global const ${index} *restrict indices, __global long *restrict status, const I slot, const I rows,
                    const I n, const I t0_size\
% if base:
, const I ob\
% endif
% if not scalar:
, const I os, const I src_row, const I src_step\
% endif
, const I oi\
% if scalar:
, const long value, const long value_high\
% endif
) {
  __local ${T} line[${room}] __attribute__((aligned(64)));
  const I part = get_global_id(0), parts = get_global_size(0), first = rows * part / parts, last = rows * (part + 1) / parts;
  const I t0_step = 1, oi0 = 0, whole = t0_size & -${L};
% if base:
  const I touched = t0_size, asked = ${b.share('touched', 'n', 64 // size)};
% endif
  status += slot + 4 * part;
  for (I row = first; row < last; row++) {
% if not scalar:
    __global const ${T} *s = src + os + row * src_row;
% endif
    __global const ${index} *i0 = indices + oi + row * n;
% if base:
    __global const ${T} *b = base + ob + row * t0_size, *soon = b + (row + 1 < last ? t0_size : 0);
    for (I j = 0; j < whole; j += ${L}) *(${vector('__local')} *)(line + j) = *(${vector('__global const')} *)(b + j);
    for (I j = whole; j < t0_size; j++) line[j] = b[j];
    I next = 0;
% else:
    for (I j = 0; j < t0_size; j += ${L}) *(__local ${V} *)(line + j) = 0;
% endif
    for (I begin = 0; begin < n; begin += ${block}) {
      const I end = begin + ${block} < n ? begin + ${block} : n, eights = begin + ((end - begin) & -8);
% if base:
      ${b.ask_share('CLT_PREFETCH', 64 // size)}
% endif
      if (clt_bad(i0 + begin, end - begin, t0_size)) {
        for (I j = begin; j < end; j++) {
          const I w_i0 = j;
          I at = 0;
          ${w.lookup(1, 'w', 'at', False, False, 'continue;', 'row * n + j')}
          ${put('at', 'j')}
        }
        continue;
      }
      for (I j = begin; j < eights; j += 8) {
% for k in range(8):
        { const I at = (I)i0[j + ${k}]; ${put('at', f'j + {k}')} }
% endfor
      }
      for (I j = eights; j < end; j++) { const I at = (I)i0[j]; ${put('at', 'j')} }
    }
    __global ${T} *d = dst + row * t0_size;
    for (I j = 0; j < whole; j += ${L}) {
% if streamed:
      CLT_STREAM(*(__local ${V} *)(line + j), (__global ${V} *)(d + j));
% else:
      *(${vector('__global')} *)(d + j) = *(__local ${V} *)(line + j);
% endif
    }
    for (I j = whole; j < t0_size; j++) d[j] = line[j];
  }
}
