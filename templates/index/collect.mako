<%doc>
Out-of-place index_add: dst[r] = base[r] + the rows src[i] for which index[i] is r, in the order of i. CPU.
Without `base` rows begin as zeros; `unit` is 0 if one element of src is repeated along each of its rows.
A work-item owns a range of dst's rows: it counts the contributions to each, lists them by row in `order` (`ends`: for
each row the end of its list), then makes the rows one after the other. So each row is written once and never read, with
non-temporal stores if `streamed`; rows of src are prefetched `ahead` contributions before they are added. 16-bit floats
are added as float32 and rounded after each addition, as where rows are added in place.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="w" file="/walk.mako"/>\
<%
many, stored = (4, 1), f'ushort{L}' if short else memory.reg
def rounded(v, of): return f'clt_round_{dt.code}_{of}({v})' if short else v
%>\
${headers}
${w.prelude()}
typedef long I;
typedef ${dt.cl} T;
typedef ${dt.reg} R;
typedef ${memory.reg} V;
${lane_memory.helpers({dt.code: memory}, L, set())}\
#pragma OPENCL FP_CONTRACT OFF
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global T *restrict dst\
% if base:
, __global const T *restrict base\
% endif
, __global const T *restrict src, __global const ${index} *restrict i0, __global int *restrict lists, __global long *restrict status, const I slot,
                    const I rows, const I width, const I n\
% if base:
, const I ob\
% endif
, const I os, const I src_row, const I oi0, const I index_step) {
  const I part = get_global_id(0), parts = get_global_size(0), top = rows * part / parts, bottom = rows * (part + 1) / parts;
  const I t0_size = rows, t0_step = 1, mine = bottom - top;
  ## Contributions to other work-items' rows are counted, too, in a few dummy counters in turn: a branch would be
  ## mispredicted for random indices, and increments of a single counter would wait for each other. Their list entries
  ## all go to `none`.
  const I none = n + top + ${others + 1} * part;
  __global int *restrict order = lists, *restrict ends = lists + none + 1;
  status += slot + 4 * part;
  for (I r = 0; r < mine + ${others}; r++) ends[r] = 0;
  int bad = 0, before = 0;
  for (I i = 0; i < n; i++) {
    const I w_i0 = i * index_step;
    I at = 0;
    ${w.lookup_all(1, 'w', 'at', wrap, 'bad')}
    before += at < top;
    at -= top;
    ++ends[(ulong)at < (ulong)mine ? at : mine + (i & ${others - 1})];
  }
  if (bad) {
    for (I i = 0; i < n; i++) {
      const I w_i0 = i * index_step;
      I at = 0;
      ${w.lookup(1, 'w', 'at', wrap, False, 'continue;', 'i')}
    }
    return;
  }
  int end = before;
  for (I r = 0; r < mine; r++) {
    const int count = ends[r];
    ends[r] = end;
    end += count;
  }
  for (I r = mine; r < mine + ${others}; r++) ends[r] = (int)none;
  for (I i = 0; i < n; i++) {
    I at = (I)i0[oi0 + i * index_step];
% if wrap:
    at += at < 0 ? rows : 0;
% endif
    at -= top;
    const int here = (ulong)at < (ulong)mine;
    __global int *to = ends + (here ? at : mine + (i & ${others - 1}));
    order[*to] = (int)i;
    *to += here;
  }
  int from = before;
  for (I r = 0; r < mine; r++) {
    const int to = ends[r];
    __global T *d = dst + (top + r) * width;
% if base:
    __global const T *b = base + ob + (top + r) * width;
% endif
    I j = 0;
% for at_once in many:
    for (; j + ${at_once * L} <= width; j += ${at_once * L}) {
% for u in range(at_once):
      V v${u} = ${memory.vector_load(f'b + j + {u * L}') if base else '(V)(0)'};
% endfor
      for (int k = from; k < to; k++) {
        __global const T *s = src + os + order[k] * src_row${' + j' if unit else ''};
% if unit:
        __global const T *soon = src + os + order[k + ${ahead} < end ? k + ${ahead} : k] * src_row + j;
% for u in range(at_once):
        CLT_PREFETCH(soon + ${u * L});
% endfor
% endif
% for u in range(at_once):
        v${u} = ${rounded(f'v{u} + ' + (memory.vector_load(f's + {u * L}') if unit else f'(V)({scalar.scalar_load("s")})'), memory.reg)};
% endfor
      }
% for u in range(at_once):
% if streamed:
      const ${stored} made${u} = ${memory.to_bits(f'v{u}')};
      CLT_STREAM(made${u}, (__global ${stored} *)(d + j + ${u * L}));
% else:
      ${memory.vector_store(f'd + j + {u * L}', f'v{u}')};
% endif
% endfor
    }
% endfor
    for (; j < width; j++) {
      R v = ${scalar.scalar_load('b + j') if base else '0'};
      for (int k = from; k < to; k++) v = ${rounded('v + ' + scalar.scalar_load('(src + os + order[k] * src_row' + ' + j' * unit + ')'), 'float')};
      ${scalar.scalar_store('d + j', 'v')};
    }
    from = to;
  }
}
