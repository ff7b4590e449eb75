<%doc>
Fourier transforms of contiguous lines, for devices where a work-item is a thread: few lines at a time, so that they
stay in L1 from beginning to end. A line of N = C n numbers is treated as C columns: number i of column c is C i + c.
Lanes of a vector are the columns of ${'L'} lines. The columns are transformed (fft/stages.mako), number k of column c
is multiplied by the twiddle factor exp(-2 pi i c k / N) (`twists`, by vectors), and rows are transposed to columns:
number k + n j of the result is number j of the C-point transform of the columns' numbers k; lanes are neighbours in k.
The inverse transform is conj(forward(conj x)): imaginary parts are multiplied by sign_in and sign_out.
kind: "complex"; "real": a line is 2 N real numbers, treated as N complex ones, and the result is N + 1 numbers of their
spectrum; "back": the inverse of that. `turns` are then the roots of unity of order 2 N. The next lines are prefetched
while these are computed. Real lines may be multiplied by a `window`. Variables: fn T itemsize lanes columns kind rank,
streamed (results go past the cache), sixteenths (powers of the root of unity of 16).
</%doc>\
<%namespace name="square" file="/square.mako"/>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="butterflies" file="/fft/stages.mako"/>\
<%!
hexes = '0123456789abcdef'
%>\
<%
V, C = lanes, columns
L = V // C
S = '' if T == 'double' else 'f'
def lit(x): return f"({x!r}{S})"
def mix(a, b, start): return ', '.join(f'{a}.s{hexes[j]}, {b}.s{hexes[j]}' for j in range(start, start + V // 2))
backwards = 's' + hexes[:V][::-1]
%>\
${ahead}
% if streamed:
${stream}
% endif
typedef long I;
typedef ${T} T;
typedef ${T}2 T2;
typedef ${T}${V} TV;
typedef ${T}${V} UV __attribute__((aligned(${itemsize})));
## parts: load V complex numbers at `place` as vectors of real and imaginary parts; paired: store such vectors there.
<%def name="parts(re, im, place)">\
      {
        const TV lo = *(__global const UV *)(${place}), hi = *(__global const UV *)(${place} + ${V});
        ${re} = (TV)(lo.even, hi.even); ${im} = (TV)(lo.odd, hi.odd);
      }
</%def>\
<%def name="paired(re, im, place, streamed=False)">\
      {
        const TV re = ${re}, im = ${im};
% if streamed:
        CLT_STREAM(((TV)(${mix('re', 'im', 0)})), (__global TV *)(${place}));
        CLT_STREAM(((TV)(${mix('re', 'im', V // 2)})), (__global TV *)(${place} + ${V}));
% else:
        *(__global UV *)(${place}) = (TV)(${mix('re', 'im', 0)});
        *(__global UV *)(${place} + ${V}) = (TV)(${mix('re', 'im', V // 2)});
% endif
      }
</%def>\
## Numbers k .. of the C-point transforms are stored; ${'{x}'}0 .. are columns of a line.
<%def name="results(line)">\
% for j in range(C):
<% place = f"k + {j} * n" %>\
% if kind == 'real':
        *(__global UV *)(kept + ${line} * 2 * N + ${place}) = z${j}r;
        *(__global UV *)(kept + ${line} * 2 * N + N + ${place}) = z${j}i;
% else:
${paired(f"z{j}r * scale", f"z{j}i * scale_im + none", f"to{line} + 2 * ({place})", streamed)}\
% endif
% endfor
</%def>\
<%def name="times(to, x, e)">\
<% wr, wi = sixteenths[e] %>\
% if e == 0:
        const TV ${to}r = ${x}r, ${to}i = ${x}i;
% elif e == 4:
        const TV ${to}r = ${x}i, ${to}i = -${x}r;
% else:
        const TV ${to}r = ${x}r * ${lit(wr)} - ${x}i * ${lit(wi)}, ${to}i = ${x}r * ${lit(wi)} + ${x}i * ${lit(wr)};
% endif
</%def>\
#define CLT_WHOLE
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const T *src, __global T *dst, __global const T2 *roots, __global const T *twists, __global const T *turns,
    __global const T *window, __global T *work, const I windowed, const I length, const I plan, const I lines, const I so, const I oo, const T sign_in, const T sign_out, const T scale
    ${w.params('p', rank, ['s', 'd'])}) {
  const int n = (int)length, N = n * ${C};
  const T none = sign_out < 0 ? 0 : -(T)0, scale_im = scale * sign_out; // conjugated zeros stay positive
  const I blocks = (lines + ${L - 1}) / ${L}, parts = (I)get_global_size(0), part = (I)get_global_id(0);
  const I first = blocks / parts * part + min(part, (I)(blocks % parts)), last = first + blocks / parts + (part < blocks % parts);
  __global UV *half0 = (__global UV *)(work + part * n * ${6 * V});
  __global T *kept = (__global T *)(half0 + 4 * n);
  for (I block = first; block < last; ++block) {
    __global UV *x = half0, *y = half0 + 2 * n;
% for l in range(L):
    __global const T *from${l};
    __global const T *next${l};
    __global T *to${l};
    {
      const I row = min((block + 1) * ${L} + ${l}, lines - 1);
      ${w.decode('p', rank, ['s', 'd'], 'row')}
      next${l} = src + ${1 if kind == 'real' else 2} * (so + p_s_at);
    }
    {
      const I row = min(block * ${L} + ${l}, lines - 1);
      ${w.decode('p', rank, ['s', 'd'], 'row')}
      from${l} = src + ${1 if kind == 'real' else 2} * (so + p_s_at);
      to${l} = dst + ${1 if kind == 'back' else 2} * (oo + p_d_at);
    }
% endfor
% if kind == 'back':
## From the spectrum X[0 .. N] of real numbers compute N complex ones: Z[k] and Z[N - k] from X[k] and X[N - k].
% for l in range(L):
    {
      __global T *z = kept + ${l} * 2 * N;
      const T first_re = from${l}[0], last_re = from${l}[2 * N];
      for (int at = 1; at <= N / 2; at += ${V}) {
        const int k = min(at, N / 2 - ${V - 1}), j = N - k - ${V - 1};
        TV ar, ai, br, bi, wr, wi;
${parts('ar', 'ai', f'from{l} + 2 * k')}\
${parts('br', 'bi', f'from{l} + 2 * j')}\
${parts('wr', 'wi', 'turns + 2 * k')}\
        ai *= sign_in;
        br = br.${backwards}; bi = bi.${backwards} * sign_in;
        const TV er = ar + br, ei = ai - bi, dr = ar - br, di = ai + bi;
        const TV pr = (dr * wr - di * wi) * sign_in, pi = (dr * wi + di * wr) * sign_in;
        const TV zr = er - pi, zi = ei + pr, yr = er + pi, yi = pr - ei;
${paired(f'yr.{backwards}', f'yi.{backwards}', 'z + 2 * j')}\
${paired('zr', 'zi', 'z + 2 * k')}\
      }
      z[0] = first_re + last_re;
      z[1] = (first_re - last_re) * sign_in;
      from${l} = z;
    }
% endfor
% endif
    for (int i = 0; i < n; ++i) {
% for l in range(L):
% for line in range(0, 2 * C * itemsize, 64):
      CLT_PREFETCH(next${l} + ${2 * C} * i + ${line // itemsize});
% if not streamed:
      CLT_PREFETCH_TO_WRITE(to${l} + ${2 * C} * i + ${line // itemsize});
% endif
% endfor
% endfor
% if L == 1:
      TV lo = *(__global const UV *)(from0 + ${2 * C} * i), hi = *(__global const UV *)(from0 + ${2 * C} * i + ${V});
% else:
      TV lo = *(__global const UV *)(from0 + ${2 * C} * i), hi = *(__global const UV *)(from1 + ${2 * C} * i);
% endif
% if kind == 'real':
      if (windowed) {
        lo *= *(__global const UV *)(window + ${2 * C} * i);
        hi *= *(__global const UV *)(window + ${2 * C} * i${f' + {V}' if L == 1 else ''});
      }
% endif
      x[2 * i] = (TV)(lo.even, hi.even);
      x[2 * i + 1] = (TV)(lo.odd, hi.odd)${'' if kind == 'back' else ' * sign_in'};
    }
${butterflies.stages()}\
    for (int at = 0; at < n; at += ${V}) {
      const int k = min(at, n - ${V});
% for i in range(V):
      TV ar${i}, ai${i};
      {
        const TV zr = x[2 * (k + ${i})], zi = x[2 * (k + ${i}) + 1];
        const TV wr = *(__global const UV *)(twists + (k + ${i}) * ${2 * V}), wi = *(__global const UV *)(twists + (k + ${i}) * ${2 * V} + ${V});
        ar${i} = zr * wr - zi * wi; ai${i} = zr * wi + zi * wr;
      }
% endfor
${square.turned('TV', V, 'ar', 'cr')}\
${square.turned('TV', V, 'ai', 'ci')}\
% for l in range(L):
      {
% for c in range(C):
        const TV x${c}r = cr${l * C + c}, x${c}i = ci${l * C + c};
% endfor
% if C == 8:
${butterflies.eight()}\
% for j in range(8):
        const TV z${j}r = y${j}r, z${j}i = y${j}i;
% endfor
% else:
% for c in range(4):
${butterflies.four([f'x{c}', f'x{c + 4}', f'x{c + 8}', f'x{c + 12}'], [f'u{c}_{j}' for j in range(4)], f'a{c}')}\
% endfor
% for j in range(4):
% for c in range(4):
${times(f'v{c}_{j}', f'u{c}_{j}', c * j)}\
% endfor
${butterflies.four([f'v{c}_{j}' for c in range(4)], [f'z{j + 4 * i}' for i in range(4)], f'b{j}')}\
% endfor
% endif
${results(l)}\
      }
% endfor
    }
% if kind == 'real':
## From the spectrum Z of N complex numbers compute that of 2 N real ones: X[k] and X[N - k] from Z[k] and Z[N - k].
% for l in range(L):
    {
      __global const T *z = kept + ${l} * 2 * N;
      for (int at = 1; at <= N / 2; at += ${V}) {
        const int k = min(at, N / 2 - ${V - 1}), j = N - k - ${V - 1};
        const TV ar = *(__global const UV *)(z + k), ai = *(__global const UV *)(z + N + k);
        const TV nr = *(__global const UV *)(z + j), ni = *(__global const UV *)(z + N + j), br = nr.${backwards}, bi = ni.${backwards};
        TV wr, wi;
${parts('wr', 'wi', 'turns + 2 * k')}\
        const TV er = ar + br, ei = ai - bi, dr = ar - br, di = ai + bi;
        const TV half_scale = ${lit(0.5)} * scale;
        const TV pr = (di * wr + dr * wi) * half_scale, pi = (di * wi - dr * wr) * half_scale, hr = er * half_scale, hi = ei * half_scale;
        const TV yr = hr - pr, yi = pi - hi;
${paired(f'yr.{backwards}', f'yi.{backwards}', f'to{l} + 2 * j')}\
${paired('hr + pr', 'hi + pi', f'to{l} + 2 * k')}\
      }
      to${l}[0] = (z[0] + z[N]) * scale; to${l}[1] = 0;
      to${l}[2 * N] = (z[0] - z[N]) * scale; to${l}[2 * N + 1] = 0;
    }
% endfor
% endif
  }
}
