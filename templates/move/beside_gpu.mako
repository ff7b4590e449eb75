<%doc>
Rows of ${parts} dense sources side by side: each row of the result is a row of every source, one after another. GPU. A
lane has one place of the rows, so that the source it belongs to is found once, and copies that place of `each` rows,
with a few loads in flight.
</%doc>\
<%
T = {16: 'uint4', 8: 'ulong', 4: 'uint', 2: 'ushort', 1: 'uchar'}[size]
%>\
typedef ${I} I;
__kernel __attribute__((reqd_work_group_size(${lanes}, 1, 1)))
void ${fn}(__global ${T} *restrict dst${''.join(f', __global const {T} *restrict src{k}' for k in range(parts))}
, const I rows, const I width, const I each, const I od${''.join(f', const I o{k}, const I n{k}' for k in range(parts))}) {
  const I blocks = (width + ${lanes - 1}) / ${lanes}, group = (I)get_group_id(0);
  const I at = group % blocks * ${lanes} + (I)get_local_id(0), first = group / blocks * each, last = min(first + each, rows);
  if (at >= width) return;
  __global const ${T} *from = src0 + o0 + at;
  I step = n0, end = n0;
% for k in range(1, parts):
  if (at >= end) { from = src${k} + o${k} + (at - end); step = n${k}; }
  end += n${k};
% endfor
  from += first * step;
  __global ${T} *to = dst + od + first * width + at;
  I row = first;
  for (; row + ${ahead} <= last; row += ${ahead}) {
% for k in range(ahead):
    const ${T} v${k} = from[${k} * step];
% endfor
% for k in range(ahead):
    to[${k} * width] = v${k};
% endfor
    from += ${ahead} * step;
    to += ${ahead} * width;
  }
  for (; row < last; ++row, from += step, to += width) *to = *from;
}
