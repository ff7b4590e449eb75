<%doc>
Discrete Fourier transforms of lines of one length n on a GPU, or one pass of a longer transform (four-step): as
fft.mako, with the same arguments and layouts, but n and the options that choose code are constants of the template. A
work-group takes `width` lines with `lanes` lanes each. A lane holds its butterflies' numbers in registers; the first
Stockham stage reads global memory and the last one writes it, so that local memory only passes numbers from stage to
stage, real and imaginary parts separately, padded against bank conflicts. Neighbouring lanes take neighbouring numbers
of a line or (`across`, `out_across`) neighbouring lines, whichever are adjacent in memory.

stages: radix, number s of equal twiddles, butterflies per lane, and the places of powers 1, 2 and 4 of the twiddles in
their table.
layouts: of local memory between stages; `at` gives the address of number i of line b.
</%doc>\
<%namespace name="w" file="/walk.mako"/>\
<%namespace name="butterflies" file="/fft/stages.mako"/>\
<%
S = '' if T == 'double' else 'f'
held = max(stage.per_lane * stage.r for stage in stages)
pairs, whole = halved and herm, halved and not herm
turns_lanes = across != out_across
later = 'o' if turns_lanes else 'i'
def at(e, b, i):
    x = layouts[e]
    address = f"{b} * {x.line} + ({i}) * {x.step}"
    return f"{address} + ({i}) * {x.step} / {x.block} * {x.pad}" if x.pad else address
%>\
typedef ${I} I;
typedef ${T} T;
typedef ${T}2 T2;
typedef T TV;
static inline T2 clt_times(const T2 a, const T2 b) { return (T2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
% if turned:
## full table: 4096 fine roots, then the coarse ones
static inline T2 clt_turn(__global const T2 *turns, const I j) { return clt_times(turns[4096 + (j >> 12)], turns[j & 4095]); }
% endif
static inline T2 clt_read(__global const T *src, const I base, const I index, const I step, const I full) {
% if src_real and halved and paired:
    return *(__global const T2 *)(src + base + 2 * index);
% elif src_real and halved:
    return (T2)(src[base + 2 * index * step], src[base + (2 * index + 1) * step]);
% elif src_real:
    return (T2)(src[base + index * step], 0);
% else:
    __global const T2 *from = (__global const T2 *)src + base;
% if halved:
    if (index == 0) return (T2)(from[0].x, from[full * step].x);
% endif
% if herm and not halved:
    const int mirrored = 2 * index > full;
    const T2 z = from[(mirrored ? full - index : index) * step];
    return (T2)(z.x, mirrored ? -z.y : z.y);
% else:
    return from[index * step];
% endif
% endif
}
## Declare the work-item's line and its lane within the line, for reading (tag i) or writing (tag o).
<%def name="place(tag, across)">\
    const int at${tag} = lid ${f'% {width}' if across else f'/ {lanes}'}, j${tag} = lid ${f'/ {width}' if across else f'% {lanes}'};
    const I line${tag} = (I)get_group_id(0) * ${width} + at${tag};
    const int live${tag} = line${tag} < lines;
</%def>\
<%def name="where(tag)">\
    I s_at${tag} = 0, d_at${tag} = 0, column${tag} = 0;
    if (live${tag}) {
% if columns:
        const I row = line${tag} / cols;
        column${tag} = line${tag} - row * cols;
% else:
        const I row = line${tag};
% endif
        ${w.decode('p', rank, ['s', 'd'], 'row')}
        s_at${tag} = so + p_s_at; d_at${tag} = p_d_at;
    }
</%def>\
<%def name="write(z, k, tag)">\
{
        const I index = ${f'column{tag} * oc + ' if columns else ''}(I)(${k}) * oi;
        T2 z = ${z};
% if turned:
        z = clt_times(z, clt_turn(turns, column${tag} * (I)(${k})));
% endif
        z = (T2)(z.x * scale, z.y * scale * sign_out);
% if pairs and paired:
        *(__global T2 *)(dst + d_at${tag} + 2 * (I)(${k})) = z;
% elif pairs:
        dst[d_at${tag} + 2 * (I)(${k}) * os] = z.x;
        dst[d_at${tag} + (2 * (I)(${k}) + 1) * os] = z.y;
% elif dst_real:
        if (index < nout) dst[d_at${tag} + index * os] = z.x;
% else:
        if (index < nout) ((__global T2 *)dst)[d_at${tag} + index * os] = (T2)(z.x, z.y + none);
% endif
      }
</%def>\
## Run the body for each of a lane's butterflies of a stage.
<%def name="each(stage, tag)">\
% for t in range(stage.per_lane):
<% partial = (t + 1) * lanes > n // stage.r %>\
    ${f'if (j{tag} < {n // stage.r - t * lanes}) ' if partial else ''}{
      const int jt = j${tag} + ${t * lanes};
      ${caller.body(t)}
    }
% endfor
</%def>\
__attribute__((reqd_work_group_size(${width * lanes}, 1, 1)))
__kernel void ${fn}(__global const T *restrict src, __global T *restrict dst, __global const T2 *restrict twiddles, __global const T2 *restrict turns,
    ${'__global const T2 *restrict window,' if windowed else ''}
    const I lines, const I cols, const I full, const I nout, const I so, const I oo, const I ic, const I ii, const I is, const I oc, const I oi, const I os,
    const T sign_in, const T sign_out, const T scale ${w.params('p', rank, ['s', 'd'])}) {
    const int lid = (int)get_local_id(0);
    dst += ${1 if dst_real else 2} * oo;
    __local T re[${max(x.words for x in layouts)}], im[${max(x.words for x in layouts)}];
    const T none = sign_out < 0 ? 0 : -(T)0; // conjugated zeros stay positive
${place('i', across)}\
${where('i')}\
% if turns_lanes:
${place('o', out_across)}\
${where('o')}\
% endif
    T ${', '.join(f'v{k}r = 0, v{k}i = 0' for k in range(held))};
<% passed = 0 %>\
% if pairs:
## Compute the spectrum of n complex numbers from that of 2 n real ones (see `halves` in fft.mako).
    if (livei)
      for (int k = ji; k <= ${n // 2}; k += ${lanes}) {
        const int j = ${n} - k;
        T2 a = clt_read(src, s_ati, k, is, full);
        a.y *= sign_in;
        if (k == 0) {
          re[${at(0, 'ati', '0')}] = a.x + a.y * sign_in;
          im[${at(0, 'ati', '0')}] = a.x * sign_in - a.y;
        } else {
          T2 b = clt_read(src, s_ati, j, is, full);
          b.y *= sign_in;
          const T2 w = turns[k];
          const T er = a.x + b.x, ei = a.y - b.y, dr = a.x - b.x, di = a.y + b.y;
          const T pr = (dr * w.x - di * w.y) * sign_in, pi = (dr * w.y + di * w.x) * sign_in;
          re[${at(0, 'ati', 'k')}] = er - pi; im[${at(0, 'ati', 'k')}] = ei + pr;
          re[${at(0, 'ati', 'j')}] = er + pi; im[${at(0, 'ati', 'j')}] = pr - ei;
        }
      }
    barrier(CLK_LOCAL_MEM_FENCE);
<% passed = 1 %>\
% endif
% for e, stage in enumerate(stages):
<%
r, s = stage.r, stage.s
tag = later if passed else 'i'
last = e == len(stages) - 1
def known(k): return [p for p in (4, 2, 1) if p & k]
%>\
    // radix ${r}, ${s} of a twiddle
% if not passed:
    if (livei) {
<%self:each stage="${stage}" tag="${tag}" args="t">\
% for k in range(r):
      { const T2 z = ${f'window[jt + {n // r * k}] * ' if windowed else ''}clt_read(src, s_ati${'' if herm or not columns else ' + columni * ic * is'}, ${'columni * ic + ' if herm and columns else ''}(I)(jt + ${n // r * k}) * ii, is, full); v${t * r + k}r = z.x; v${t * r + k}i = z.y * sign_in; }
% endfor
</%self:each>\
    }
% else:
<%self:each stage="${stage}" tag="${tag}" args="t">\
% for k in range(r):
      v${t * r + k}r = re[${at(passed - 1, f'at{tag}', f'jt + {n // r * k}')}]; v${t * r + k}i = im[${at(passed - 1, f'at{tag}', f'jt + {n // r * k}')}];
% endfor
</%self:each>\
% endif
<%self:each stage="${stage}" tag="${tag}" args="t">\
% for k in range(r):
      const T x${k}r = v${t * r + k}r, x${k}i = v${t * r + k}i;
% endfor
% if r == 2:
      const T y0r = x0r + x1r, y0i = x0i + x1i, y1r = x0r - x1r, y1i = x0i - x1i;
% elif r == 4:
${butterflies.four(['x0', 'x1', 'x2', 'x3'], ['y0', 'y1', 'y2', 'y3'], '')}\
% elif r == 8:
${butterflies.eight()}\
% else:
${butterflies.odd(r)}\
% endif
      v${t * r}r = y0r; v${t * r}i = y0i;
% if last:
% for k in range(1, r):
      v${t * r + k}r = y${k}r; v${t * r + k}i = y${k}i;
% endfor
% else:
% for k in range(1, r):
% if k in (1, 2, 4):
      const T2 w${k} = twiddles[${stage.twiddles[k.bit_length() - 1]} + ${f'jt / {s}' if s > 1 else 'jt'}];
% else:
      const T2 w${k} = clt_times(w${k - known(k)[0]}, w${known(k)[0]});
% endif
      v${t * r + k}r = y${k}r * w${k}.x - y${k}i * w${k}.y; v${t * r + k}i = y${k}r * w${k}.y + y${k}i * w${k}.x;
% endfor
% endif
</%self:each>\
% if not last or whole:
% if passed:
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
<%self:each stage="${stage}" tag="${tag}" args="t">\
      const int to = jt + jt / ${s} * ${s * (r - 1)};
% for k in range(r):
      re[${at(passed, f'at{tag}', f'to + {s * k}')}] = v${t * r + k}r; im[${at(passed, f'at{tag}', f'to + {s * k}')}] = v${t * r + k}i;
% endfor
</%self:each>\
    barrier(CLK_LOCAL_MEM_FENCE);
<% passed += 1 %>\
% else:
    if (live${tag}) {
<%self:each stage="${stage}" tag="${tag}" args="t">\
% for k in range(r):
      ${write(f'(T2)(v{t * r + k}r, v{t * r + k}i)', f'jt + {s * k}', tag)}\
% endfor
</%self:each>\
    }
% endif
% endfor
% if whole:
## Compute the spectrum of 2 n real numbers from that of n complex ones (see `halves` in fft.mako); its second half is
## the conjugate of the first.
    if (live${later})
      for (int k = j${later}; k <= ${n // 2}; k += ${lanes}) {
        const int j = ${n} - k;
        const T ar = re[${at(passed - 1, f'at{later}', 'k')}], ai = im[${at(passed - 1, f'at{later}', 'k')}];
        if (k == 0) {
          ${write('(T2)(ar + ai, 0)', '0', later)}\
          ${write('(T2)(ar - ai, 0)', str(n), later)}\
        } else {
          const T br = re[${at(passed - 1, f'at{later}', 'j')}], bi = im[${at(passed - 1, f'at{later}', 'j')}];
          const T2 w = turns[k];
          const T er = (ar + br) * 0.5${S}, ei = (ai - bi) * 0.5${S}, dr = ar - br, di = ai + bi;
          const T pr = (di * w.x + dr * w.y) * 0.5${S}, pi = (di * w.y - dr * w.x) * 0.5${S};
          ${write('(T2)(er + pr, ei + pi)', 'k', later)}\
          ${write('(T2)(er - pr, pi - ei)', 'j', later)}\
          if (nout > ${n + 1}) {
            ${write('(T2)(er + pr, -ei - pi)', f'{2 * n} - k', later)}\
            ${write('(T2)(er - pr, ei - pi)', f'{2 * n} - j', later)}\
          }
        }
      }
% endif
}
