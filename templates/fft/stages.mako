<%doc>
Stockham stages of a Fourier transform: each goes from vectors x, real and imaginary parts for each index, to y; then x
and y are exchanged. p numbers the groups of equal twiddles, q the positions in a group. On a CPU loops, on a GPU a lane
for each butterfly of each of `width` lines. Called with: n, plan (radices by five bits each, the next one lowest),
roots (of unity, n of them), x, y.
</%doc>\
<%!
import math
def lit(x, T): return f"{x!r}{'' if T == 'double' else 'f'}" if x >= 0 else f"({x!r}{'' if T == 'double' else 'f'})"
def at(i, gpu): return f"2 * ({i}) * width + b" if gpu else f"2 * ({i})"
def im(gpu): return "+ width" if gpu else "+ 1"
%>\
## The butterfly of an odd radix r, from x0 .. to y0 .., with its roots of unity as literals.
<%def name="odd(r)">\
<% half = r // 2 %>\
% for j in range(1, half + 1):
        const TV tr${j} = x${j}r + x${r - j}r, ti${j} = x${j}i + x${r - j}i, dr${j} = x${j}r - x${r - j}r, di${j} = x${j}i - x${r - j}i;
% endfor
        const TV y0r = x0r + ${' + '.join(f'tr{j}' for j in range(1, half + 1))}, y0i = x0i + ${' + '.join(f'ti{j}' for j in range(1, half + 1))};
% for k in range(1, half + 1):
<%
c = [lit(math.cos(2 * math.pi * (j * k % r) / r), T) for j in range(1, half + 1)]
s = [lit(math.sin(2 * math.pi * (j * k % r) / r), T) for j in range(1, half + 1)]
def dot(weights, name): return ' + '.join(f'{x} * {name}{j + 1}' for j, x in enumerate(weights))
%>\
        const TV ur${k} = x0r + ${dot(c, 'tr')}, ui${k} = x0i + ${dot(c, 'ti')};
        const TV vr${k} = ${dot(s, 'dr')}, vi${k} = ${dot(s, 'di')};
        const TV y${k}r = ur${k} + vi${k}, y${k}i = ui${k} - vr${k}, y${r - k}r = ur${k} - vi${k}, y${r - k}i = ui${k} + vr${k};
% endfor
</%def>\
<%def name="four(x, y, tag)">\
<% a, b, c, d = x %>\
        const TV pr${tag} = ${a}r + ${c}r, pi${tag} = ${a}i + ${c}i, qr${tag} = ${a}r - ${c}r, qi${tag} = ${a}i - ${c}i;
        const TV rr${tag} = ${b}r + ${d}r, ri${tag} = ${b}i + ${d}i, sr${tag} = ${b}r - ${d}r, si${tag} = ${b}i - ${d}i;
        const TV ${y[0]}r = pr${tag} + rr${tag}, ${y[0]}i = pi${tag} + ri${tag}, ${y[2]}r = pr${tag} - rr${tag}, ${y[2]}i = pi${tag} - ri${tag};
        const TV ${y[1]}r = qr${tag} + si${tag}, ${y[1]}i = qi${tag} - sr${tag}, ${y[3]}r = qr${tag} - si${tag}, ${y[3]}i = qi${tag} + sr${tag};
</%def>\
<%def name="eight()">\
${four(['x0', 'x2', 'x4', 'x6'], ['e0', 'e1', 'e2', 'e3'], 'a')}\
${four(['x1', 'x3', 'x5', 'x7'], ['o0', 'o1', 'o2', 'o3'], 'b')}\
        const TV h1r = (o1r + o1i) * ${lit(math.sqrt(0.5), T)}, h1i = (o1i - o1r) * ${lit(math.sqrt(0.5), T)};
        const TV h3r = (o3i - o3r) * ${lit(math.sqrt(0.5), T)}, h3i = -(o3r + o3i) * ${lit(math.sqrt(0.5), T)};
        const TV y0r = e0r + o0r, y0i = e0i + o0i, y4r = e0r - o0r, y4i = e0i - o0i;
        const TV y1r = e1r + h1r, y1i = e1i + h1i, y5r = e1r - h1r, y5i = e1i - h1i;
        const TV y2r = e2r + o2i, y2i = e2i - o2r, y6r = e2r - o2i, y6i = e2i + o2r;
        const TV y3r = e3r + h3r, y3i = e3i + h3i, y7r = e3r - h3r, y7i = e3i - h3i;
</%def>\
## From x0 .. to y0 ...
<%def name="butterfly(r)">\
% if r == 2:
        const TV y0r = x0r + x1r, y0i = x0i + x1i, y1r = x0r - x1r, y1i = x0i - x1i;
% elif r == 4:
${four(['x0', 'x1', 'x2', 'x3'], ['y0', 'y1', 'y2', 'y3'], '')}\
% elif r == 8:
${eight()}\
% else:
${odd(r)}\
% endif
</%def>\
## On a CPU: a first stage that reads numbers from elsewhere than x (the body loads number `i` into xkr and xki),
## and a last one that writes them elsewhere than y (the body stores ykr and yki as number `i`).
<%def name="first_stage(r)">\
      const int m = n / ${r};
      for (int p = 0; p < m; ++p) {
% for k in range(r):
        TV x${k}r, x${k}i;
${caller.body(k, f'p + m * {k}')}\
% endfor
${butterfly(r)}\
        y[${at(f'{r} * p', False)}] = y0r; y[${at(f'{r} * p', False)} + 1] = y0i;
% for k in range(1, r):
        const T2 w${k} = roots[p * ${k}];
        y[${at(f'{r} * p + {k}', False)}] = y${k}r * w${k}.x - y${k}i * w${k}.y; y[${at(f'{r} * p + {k}', False)} + 1] = y${k}r * w${k}.y + y${k}i * w${k}.x;
% endfor
      }
      { __global UV *other = x; x = y; y = other; }
</%def>\
<%def name="last_stage(r)">\
      const int s = n / ${r};
      for (int q = 0; q < s; ++q) {
% for k in range(r):
        const TV x${k}r = x[${at(f'q + s * {k}', False)}], x${k}i = x[${at(f'q + s * {k}', False)} + 1];
% endfor
${butterfly(r)}\
% for k in range(r):
${caller.body(k, f'q + s * {k}')}\
% endfor
      }
</%def>\
## Run the body for every p (group of equal twiddles) and q (position in it) of a stage: in loops on a CPU, shared among
## lanes on a GPU.
<%def name="positions(r)">\
% if gpu:
      for (int at = lid; at < n / ${r} * width; at += ${group}) {
        const int b = at % width, j = at / width, p = j / s, q = j % s;
% else:
      for (int p = 0; p < m; ++p) {
% endif
</%def>\
<%def name="stage(r)">\
    case ${r}: {
      const int m = n / (s * ${r});
${positions(r)}\
% for k in range(1, r):
        const T2 w${k} = roots[s * p * ${k}];
% endfor
% if not gpu:
        for (int q = 0; q < s; ++q) {
% endif
% for k in range(r):
        const TV x${k}r = x[${at(f'q + s * (p + m * {k})', gpu)}], x${k}i = x[${at(f'q + s * (p + m * {k})', gpu)} ${im(gpu)}];
% endfor
${butterfly(r)}\
        y[${at(f'q + s * ({r} * p)', gpu)}] = y0r; y[${at(f'q + s * ({r} * p)', gpu)} ${im(gpu)}] = y0i;
        if (m == 1) { // the last stage's twiddles are all 1
% for k in range(1, r):
          y[${at(f'q + s * {k}', gpu)}] = y${k}r; y[${at(f'q + s * {k}', gpu)} ${im(gpu)}] = y${k}i;
% endfor
        } else {
% for k in range(1, r):
          y[${at(f'q + s * ({r} * p + {k})', gpu)}] = y${k}r * w${k}.x - y${k}i * w${k}.y; y[${at(f'q + s * ({r} * p + {k})', gpu)} ${im(gpu)}] = y${k}r * w${k}.y + y${k}i * w${k}.x;
% endfor
        }
% if not gpu:
        }
% endif
      }
      break;
    }
</%def>\
## Any other odd prime, in loops; its own roots of unity are every (n / r)th of the table.
<%def name="prime_stage()">\
    default: {
      const int m = n / (s * r), half_r = r / 2;
${positions('r')}\
% if not gpu:
        for (int q = 0; q < s; ++q) {
% endif
<%def name="pair(k)">\
          const TV ar = x[${at(f'q + s * (p + m * {k})', gpu)}], ai = x[${at(f'q + s * (p + m * {k})', gpu)} ${im(gpu)}];
          const TV cr = x[${at(f'q + s * (p + m * (r - {k}))', gpu)}], ci = x[${at(f'q + s * (p + m * (r - {k}))', gpu)} ${im(gpu)}];
</%def>\
## On a GPU a lane recomputes sums and differences instead of keeping them in a private array, which would lie in device
## memory: local memory is nearer.
% if not gpu:
        TV tr[16], ti[16], dr[16], di[16];
% endif
        const TV x0r = x[${at('q + s * p', gpu)}], x0i = x[${at('q + s * p', gpu)} ${im(gpu)}];
        TV zr = x0r, zi = x0i;
        for (int k = 1; k <= half_r; ++k) {
${pair('k')}\
% if gpu:
          zr += ar + cr; zi += ai + ci;
% else:
          tr[k] = ar + cr; ti[k] = ai + ci; dr[k] = ar - cr; di[k] = ai - ci;
          zr += tr[k]; zi += ti[k];
% endif
        }
        y[${at('q + s * (r * p)', gpu)}] = zr; y[${at('q + s * (r * p)', gpu)} ${im(gpu)}] = zi;
        for (int k = 1; k <= half_r; ++k) {
          TV ur = x0r, ui = x0i, vr = (TV)(0), vi = (TV)(0);
          for (int j = 1; j <= half_r; ++j) {
            const T2 o = roots[(j * k % r) * (n / r)];
% if gpu:
${pair('j')}\
            ur += (ar + cr) * o.x; ui += (ai + ci) * o.x; vr -= (ar - cr) * o.y; vi -= (ai - ci) * o.y;
% else:
            ur += tr[j] * o.x; ui += ti[j] * o.x; vr -= dr[j] * o.y; vi -= di[j] * o.y;
% endif
          }
          const T2 wa = roots[s * p * k], wb = roots[s * p * (r - k)];
          const TV ar = ur + vi, ai = ui - vr, cr = ur - vi, ci = ui + vr;
          y[${at('q + s * (r * p + k)', gpu)}] = ar * wa.x - ai * wa.y; y[${at('q + s * (r * p + k)', gpu)} ${im(gpu)}] = ar * wa.y + ai * wa.x;
          y[${at('q + s * (r * p + r - k)', gpu)}] = cr * wb.x - ci * wb.y; y[${at('q + s * (r * p + r - k)', gpu)} ${im(gpu)}] = cr * wb.y + ci * wb.x;
        }
% if not gpu:
        }
% endif
      }
    }
</%def>\
## done: the product of the radices of stages that are computed already; those to come are `rest`, while `go`.
<%def name="stages(done='1', rest='(ulong)plan', go='rest')">\
    int s = ${done};
    for (ulong rest = ${rest}; ${go}; rest >>= 5) {
      const int r = (int)(rest & 31);
      switch (r) {
% for r in (2, 3, 4, 5, 7, 8):
${stage(r)}\
% endfor
${prime_stage()}\
      }
      s *= r;
      ${'__local' if gpu else '__global'} UV *other = x; x = y; y = other;
% if gpu:
      barrier(CLK_LOCAL_MEM_FENCE);
% endif
    }
</%def>\
