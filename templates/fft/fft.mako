<%doc>
Discrete Fourier transforms of many lines of one smooth length n (primes up to 31), or one pass of a longer transform
(four-step). A block of neighbouring lines is loaded side by side into working memory, as real and imaginary vectors for
every index; Stockham stages (fft/stages.mako) of radix 2, 3, 4, 5, 7, 8 and any other odd prime move it between two
halves of that memory; then it is stored.
CPU: a work-item takes whole blocks, each line being one lane of the vectors; working memory is global scratch that
stays in cache.
GPU: a work-group takes a block, each lane computes a butterfly of one line; working memory is local.

A line l is column c = l % cols of row l / cols. Its element i is index c * ic + i * ii of the row, of stride `is` (out:
oc, oi, os), so that the reads and writes of a four-step transform's passes do its transpositions. Indices beyond nout
are not stored. On a CPU, numbers of halved lines are multiplied by a `window`, if there is one. The inverse transform
is conj(forward(conj x)): the imaginary parts are multiplied by sign_in and sign_out.
herm: the source holds indices 0 .. full / 2, the others are conjugates. halved: a line is 2 n real numbers, treated as
n complex ones, or, with herm, the result is; `turns` are then the roots of unity of order 2 n, by which the spectrum of
the 2 n numbers is computed from that of the n, or vice versa. turned: element k of column c is multiplied by the
twiddle factor exp(-2 pi i c k / full) from a table in two parts (`turns`), or, where columns are neighbours, by vectors
of powers of it (`steps`).
</%doc>\
<%namespace name="square" file="/square.mako"/>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="butterflies" file="/fft/stages.mako"/>\
<%
import math
V = lanes
TV = f"{T}{V}" if V > 1 else T
S = '' if T == 'double' else 'f'
def lit(x): return f"{x!r}{S}" if x >= 0 else f"({x!r}{S})"
def at(i): return f"2 * ({i})" if not gpu else f"2 * ({i}) * width + b"
im = "+ 1" if not gpu else "+ width"
%>\
${ahead}
typedef long I;
typedef ${T} T;
typedef ${T}2 T2;
typedef ${TV} TV;
% if not gpu:
typedef ${TV} UV __attribute__((aligned(${itemsize})));
% else:
typedef T UV;
% endif
static inline T2 clt_times(const T2 a, const T2 b) { return (T2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
## full table: 4096 fine roots, then the coarse ones
static inline T2 clt_turn(__global const T2 *turns, const I j) { return clt_times(turns[4096 + (j >> 12)], turns[j & 4095]); }
static inline T2 clt_read(__global const T *src, const int real, const I base, const I index, const I step, const I full, const int herm, const int halved) {
    if (real) return halved ? (T2)(src[base + 2 * index * step], src[base + (2 * index + 1) * step]) : (T2)(src[base + index * step], 0);
    __global const T2 *from = (__global const T2 *)src + base;
    if (halved && index == 0) return (T2)(from[0].x, from[full * step].x);
    const int mirrored = herm && !halved && 2 * index > full;
    const T2 z = from[(mirrored ? full - index : index) * step];
    return (T2)(z.x, mirrored ? -z.y : z.y);
}
static inline void clt_write(__global T *dst, const int real, const I place, const T2 z) {
    if (real) dst[place] = z.x;
    else ((__global T2 *)dst)[place] = z;
}
## A real line of 2n numbers is transformed as n complex ones, its even numbers as real and its odd ones as imaginary
## parts. With Z the spectrum of these and X that of the line, E = (Z[k] + conj Z[n - k]) / 2, O = (Z[k] - conj Z[n -
## k]) / 2i, X[k] = E + w^k O. X[n], which is real, is kept in place of X[0]'s imaginary part, which is zero.
<%def name="halves()">\
% if gpu:
      for (int at = lid; at < (n / 2 + 1) * width; at += ${group}) {
        const int b = at % width, k = at / width;
% else:
      for (int k = 0; k <= n / 2; ++k) {
% endif
        const int j = k ? n - k : 0;
        const T2 w = turns[k];
        const TV ar = x[${at('k')}], ai = x[${at('k')} ${im}], br = x[${at('j')}], bi = x[${at('j')} ${im}];
        const TV er = ar + br, ei = ai - bi, dr = ar - br, di = ai + bi;
        if (k == 0) {
          x[${at('0')}] = ar + ai * sign_in;
          x[${at('0')} ${im}] = ar * sign_in - ai;
        } else if (herm) {
          const TV pr = (dr * w.x - di * w.y) * sign_in, pi = (dr * w.y + di * w.x) * sign_in;
          x[${at('k')}] = er - pi; x[${at('k')} ${im}] = ei + pr;
          x[${at('j')}] = er + pi; x[${at('j')} ${im}] = pr - ei;
        } else {
          const TV pr = (di * w.x + dr * w.y) * ${lit(0.5)}, pi = (di * w.y - dr * w.x) * ${lit(0.5)}, hr = er * ${lit(0.5)}, hi = ei * ${lit(0.5)};
          x[${at('k')}] = hr + pr; x[${at('k')} ${im}] = hi + pi;
          x[${at('j')}] = hr - pr; x[${at('j')} ${im}] = pi - hi;
        }
      }
% if gpu:
      barrier(CLK_LOCAL_MEM_FENCE);
% endif
</%def>\
<%def name="line(l)">\
        const I line = ${l}, column = line % cols, row = line / cols;
        ${w.decode('p', rank, ['s', 'd'], 'row')}
</%def>\
<%def name="transformed()">\
    if (pairs) {
${halves()}\
    }
% if gpu:
${butterflies.stages()}\
% else:
${butterflies.stages('read ? 8 : 1', '(ulong)plan >> (read ? 5 : 0)', 'written ? rest >> 5 : rest')}\
% endif
    if (whole) {
${halves()}\
## The results from n on are conjugates of earlier ones; they are written behind these, as the stages ended in the first
## half of the memory.
% if gpu:
      for (int at = lid; at < (count - n) * width; at += ${group}) {
        const int b = at % width, k = n + at / width, j = 2 * n - k;
% else:
      for (int k = n; k < count; ++k) {
        const int j = 2 * n - k;
% endif
        x[${at('k')}] = k == n ? x[${at('0')} ${im}] : x[${at('j')}];
        x[${at('k')} ${im}] = k == n ? (TV)(0) : -x[${at('j')} ${im}];
% if gpu:
        if (k == n) x[${at('0')} ${im}] = 0;
% endif
      }
% if gpu:
      barrier(CLK_LOCAL_MEM_FENCE);
% else:
      x[1] = (TV)(0);
% endif
    }
</%def>\
<%
hexes = '0123456789abcdef'
def mix(start): return ', '.join(f'zr.s{hexes[j]}, zi.s{hexes[j]}' for j in range(start, start + V // 2))
%>\
## Store complex numbers of neighbouring lines, as vectors zr and zi, from `to` on.
<%def name="pairs_stored(to)">\
        *(__global UV *)(${to}) = (TV)(${mix(0)});
        *(__global UV *)(${to} + ${V}) = (TV)(${mix(V // 2)});
</%def>\
<%def name="stored(r)">\
<%butterflies:last_stage r="${r}" args="k, i">
        {
          __global T *to = dst + 2 * (db[0] + (I)(${i}) * step);
          __global T *later = to + 2 * ${far} * step;
          CLT_PREFETCH_TO_WRITE(later); CLT_PREFETCH_TO_WRITE(later + ${V}); CLT_PREFETCH_TO_WRITE(later + ${2 * V - 1});
          const TV zr = y${k}r * scale, zi = y${k}i * scale_im + none;
${pairs_stored('to')}\
        }
</%butterflies:last_stage>\
</%def>\
% if not gpu:
#define CLT_WHOLE
__attribute__((reqd_work_group_size(1, 1, 1)))
% else:
__attribute__((reqd_work_group_size(${group}, 1, 1)))
% endif
__kernel void ${fn}(__global const T *src, __global T *dst, __global const T2 *roots, __global const T2 *turns, __global const T *steps,
    __global const T *window, __global T *work, const I windowed, const I length, const I plan, const I lines, const I cols, const I run, const I width_, const I full, const I nout, const I herm_, const I halved_, const I src_real_, const I dst_real_, const I turned, const I across, const I out_across,
    const I so, const I oo, const I ic, const I ii, const I is, const I oc, const I oi, const I os, const T sign_in, const T sign_out, const T scale
    ${w.params('p', rank, ['s', 'd'])}) {
  dst += (dst_real_ ? 1 : 2) * oo;
  const int n = (int)length, herm = (int)herm_, halved = (int)halved_, src_real = (int)src_real_, dst_real = (int)dst_real_;
  const int pairs = halved && herm, whole = halved && !herm, count = whole ? (int)nout : n; // of results
  int begun = 0; // the half of the memory in which the stages begin, such that they end in the first half
  int last_radix = 0;
  for (ulong rest = (ulong)plan; rest; rest >>= 5) {
    begun ^= 1;
    last_radix = (int)(rest & 31);
  }
  const T none = sign_out < 0 ? 0 : -(T)0; // conjugated zeros stay positive
% if gpu:
  const int width = (int)width_, lid = (int)get_local_id(0);
  __local T memory[${words}];
  for (I block = get_group_id(0); block * width < lines; block += get_num_groups(0)) {
    __local T *x = memory + begun * 2 * n * width, *y = memory + (1 - begun) * 2 * n * width;
    for (int at = lid; at < n * width; at += ${group}) {
      const int b = across ? at % width : at / n, i = across ? at / width : at % n;
      if (block * width + b < lines) {
${line('block * width + b')}
        const T2 z = clt_read(src, src_real, so + p_s_at, column * ic + i * ii, is, full, herm, halved);
        x[${at('i')}] = z.x; x[${at('i')} ${im}] = z.y * sign_in;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
${transformed()}\
    for (int at = lid; at < count * width; at += ${group}) {
      const int b = out_across ? at % width : at / count, k = out_across ? at / width : at % count;
      if (block * width + b < lines) {
${line('block * width + b')}
        const I index = column * oc + k * oi;
        T2 z = (T2)(x[${at('k')}], x[${at('k')} ${im}]);
        if (turned) z = clt_times(z, clt_turn(turns, column * k));
        z = (T2)(z.x * scale, z.y * scale * sign_out);
        if (pairs) {
          dst[p_d_at + 2 * k * os] = z.x;
          dst[p_d_at + (2 * k + 1) * os] = z.y;
        } else if (index < nout) clt_write(dst, dst_real, p_d_at + index * os, (T2)(z.x, z.y + none));
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
% else:
  ## Blocks of V lines of one run, whose lines are adjacent in memory; a run's last block is moved back and may overlap
  ## the one before.
  const I each = (run + ${V - 1}) / ${V}, blocks = lines / run * each, parts = (I)get_global_size(0), part = (I)get_global_id(0);
  const I first = blocks / parts * part + min(part, (I)(blocks % parts)), last = first + blocks / parts + (part < blocks % parts);
  __global UV *half0 = (__global UV *)(work + part * n * ${4 * V});
  const int straight = cols == 1 && nout == n && !(windowed || herm || halved || src_real || dst_real) && (plan & 31) == 8 && plan >> 5;
  for (I block = first; block < last; ++block) {
    __global UV *x = half0 + begun * 2 * n, *y = half0 + (1 - begun) * 2 * n;
    I sb[${V}], db[${V}], col[${V}];
    const I start = block / each * run + max(min(block % each * ${V}, run - ${V}), (I)0);
    const int live = (int)min((I)${V}, lines - start);
    int in_row = live == ${V}, out_row = in_row, neighbours = in_row;
    for (int b = 0; b < ${V}; ++b) {
${line('min(start + b, lines - 1)')}
      col[b] = column; sb[b] = so + p_s_at; db[b] = p_d_at + column * oc * os;
      neighbours &= column == col[0] + b;
      in_row &= sb[b] + column * ic * is == sb[0] + col[0] * ic * is + b;
      out_row &= db[b] == db[0] + b;
    }
    ## In one pass over neighbouring complex lines the first stage reads the source itself, and the last one writes the
    ## destination. Strides are too long for the hardware to prefetch.
    const int read = in_row && straight, written = out_row && straight && (last_radix == 4 || last_radix == 8);
    if (read) {
      const I step = ii * is;
<%butterflies:first_stage r="${8}" args="k, i">
      {
        __global const T *from = src + 2 * (sb[0] + (${i}) * step);
        CLT_PREFETCH(from + 2 * ${far} * step); CLT_PREFETCH(from + 2 * ${far} * step + ${2 * V - 1});
        const TV lo = *(__global const UV *)from, hi = *(__global const UV *)(from + ${V});
        x${k}r = (TV)(lo.even, hi.even);
        x${k}i = (TV)(lo.odd, hi.odd) * sign_in;
      }
</%butterflies:first_stage>\
    } else if (in_row && !windowed && (!herm || halved)) {
      const I first = sb[0] + col[0] * ic * is, step = ii * is;
      for (int i = 0; i < n; ++i) {
        if (src_real) {
          x[2 * i] = *(__global const UV *)(src + first + (halved ? 2 * i : i) * step);
          x[2 * i + 1] = halved ? *(__global const UV *)(src + first + (2 * i + 1) * step) : (TV)(0);
        } else {
          __global const T *from = src + 2 * (first + i * step);
          const TV lo = *(__global const UV *)from, hi = *(__global const UV *)(from + ${V});
          x[2 * i] = (TV)(lo.even, hi.even);
          x[2 * i + 1] = (TV)(lo.odd, hi.odd) * sign_in;
        }
      }
      if (pairs) {
        __global const T *from = src + 2 * (first + n * step);
        const TV lo = *(__global const UV *)from, hi = *(__global const UV *)(from + ${V});
        x[1] = (TV)(lo.even, hi.even) * sign_in;
      }
    } else if (ii == 1 && is == 1 && (halved || !(herm || src_real))) {
      __global T *to = (__global T *)x;
      __global const T *from[${V}];
      for (int b = 0; b < ${V}; ++b) from[b] = src + (src_real ? 1 : 2) * (sb[b] + col[b] * ic);
      int f = 0;
      for (; f + ${V} <= 2 * n; f += ${V}) {
        const TV weights = windowed ? *(__global const UV *)(window + f) : (TV)(1);
% for i in range(V):
        const TV r${i} = *(__global const UV *)(from[${i}] + f) * weights;
% endfor
${square.turned('TV', V, 'r', 't')}\
% for i in range(V):
        x[f + ${i}] = t${i}${' * sign_in' if i % 2 else ''};
% endfor
      }
      for (; f < 2 * n; ++f)
        for (int b = 0; b < ${V}; ++b) to[f * ${V} + b] = from[b][f] * (windowed ? window[f] : 1) * (f % 2 ? sign_in : 1);
      if (pairs) for (int b = 0; b < ${V}; ++b) to[${V} + b] = from[b][2 * n] * sign_in;
    } else {
      __global T *to = (__global T *)x;
      for (int tile = 0; tile < n; tile += 16)
        for (int b = 0; b < ${V}; ++b)
          for (int i = tile; i < min(tile + 16, n); ++i) {
            const T2 z = clt_read(src, src_real, sb[b], col[b] * ic + i * ii, is, full, herm, halved);
            to[2 * i * ${V} + b] = z.x; to[(2 * i + 1) * ${V} + b] = z.y * sign_in;
          }
    }
${transformed()}\
    if (turned) {
      __global T *to = (__global T *)x;
      for (int k = 0; k < n; ++k)
        if (neighbours) {
          const T2 turn = clt_turn(turns, col[0] * k);
          const TV sr = *(__global const UV *)(steps + 2 * k * ${V}), si = *(__global const UV *)(steps + (2 * k + 1) * ${V});
          const TV wr = sr * turn.x - si * turn.y, wi = sr * turn.y + si * turn.x, zr = x[2 * k], zi = x[2 * k + 1];
          x[2 * k] = zr * wr - zi * wi; x[2 * k + 1] = zr * wi + zi * wr;
        } else
          for (int b = 0; b < ${V}; ++b) {
            const T2 z = clt_times((T2)(to[2 * k * ${V} + b], to[(2 * k + 1) * ${V} + b]), clt_turn(turns, col[b] * k));
            to[2 * k * ${V} + b] = z.x; to[(2 * k + 1) * ${V} + b] = z.y;
          }
    }
    const T scale_im = scale * sign_out;
    if (written) {
      const I step = oi * os;
      if (last_radix == 8) {
${stored(8)}\
      } else {
${stored(4)}\
      }
    } else if (out_row) {
      for (int k = 0; k < count; ++k) {
        if (col[${V - 1}] * oc + k * oi >= nout) {
          __global const T *from = (__global const T *)x;
          for (int b = 0; b < ${V}; ++b)
            if (col[b] * oc + k * oi < nout)
              clt_write(dst, dst_real, db[b] + k * oi * os, (T2)(from[2 * k * ${V} + b] * scale, from[(2 * k + 1) * ${V} + b] * scale_im + none));
          continue;
        }
        const TV zr = x[2 * k] * scale;
        const I place = db[0] + (pairs ? 2 * k : k) * oi * os;
        if (!dst_real) {
          __global T *later = dst + 2 * (place + ${far} * oi * os);
          CLT_PREFETCH_TO_WRITE(later); CLT_PREFETCH_TO_WRITE(later + ${V}); CLT_PREFETCH_TO_WRITE(later + ${2 * V - 1});
        }
        if (dst_real) {
          *(__global UV *)(dst + place) = zr;
          if (pairs) *(__global UV *)(dst + place + os) = x[2 * k + 1] * scale_im;
          continue;
        }
        const TV zi = x[2 * k + 1] * scale_im + none;
${pairs_stored('dst + 2 * place')}\
      }
    } else if (cols == 1 && os == 1 && (pairs || !dst_real)) {
      __global const T *from = (__global const T *)x;
      const int numbers = 2 * (int)min((I)count, nout);
      int f = 0;
      for (; f + ${V} <= numbers; f += ${V}) {
% for i in range(V):
        const TV r${i} = x[f + ${i}] * ${'scale_im + none' if i % 2 else 'scale'};
% endfor
${square.turned('TV', V, 'r', 't')}\
% for i in range(V):
        if (${i} < live) *(__global UV *)(dst + (pairs ? 1 : 2) * db[${i}] + f) = t${i};
% endfor
      }
      for (; f < numbers; ++f)
        for (int b = 0; b < live; ++b) dst[(pairs ? 1 : 2) * db[b] + f] = f % 2 ? from[f * ${V} + b] * scale_im + none : from[f * ${V} + b] * scale;
    } else {
      __global const T *from = (__global const T *)x;
      for (int tile = 0; tile < count; tile += 16)
        for (int b = 0; b < live; ++b)
          for (int k = tile; k < min(tile + 16, count); ++k) {
            const T2 z = (T2)(from[2 * k * ${V} + b] * scale, from[(2 * k + 1) * ${V} + b] * scale_im);
            if (pairs) {
              dst[db[b] + 2 * k * os] = z.x;
              dst[db[b] + (2 * k + 1) * os] = z.y;
            } else if (col[b] * oc + k * oi < nout) clt_write(dst, dst_real, db[b] + k * oi * os, (T2)(z.x, z.y + none));
          }
    }
  }
% endif
}
