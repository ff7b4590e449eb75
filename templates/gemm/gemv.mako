<%doc>
Matrix times vector on a CPU, limited by the memory the matrix comes from: out[m] = alpha * sum_k A[m, k] x[k] + beta *
bias[m]. One of three bodies:
  rows   work-item (y, z): rows y*BM .. ; A contiguous along k; R rows at a time, read one after the other, in memory
         order, each summed in U vectors of V lanes.
  cols   work-item (y, z): outputs y*BM ..; A contiguous along m; M_ROOM sums in local memory, four k at a time; one
         vector. ahead: this work-item's part of the next four k is prefetched meanwhile, which the hardware prefetcher
         would miss.
  narrow work-item z: as cols, for at most R vectors of outputs, whose sums stay in registers.
cols reads x at any stride; rows with stage copies x to local memory first, X_ROOM elements at a time.
Variables: fn body ta to acc load loadv store unaligned V R U stage X_ROOM M_ROOM ahead headers.
</%doc>
<%
av = f"{acc}{V}"
%>\
<%def name="finish(first, count)">\
        for (long i = ${first}; i < ${first} + ${count}; i++) {
            ${acc} y = sum[i - ${first}] * alpha;
            if (has_bias) y += beta * ${load("d[i * sd]", "to")};
            ${store("y", "c", "i * sc")};
        }
</%def>\
% for h in headers:
${h}
% endfor
% for t, size in unaligned:
typedef ${t}${V} ${t}${V}_u __attribute__((aligned(${size})));
% endfor
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${ta} *A, long aoff, long sam, long sak,
    __global const ${ta} *X, long xoff, long sx, long sxn,
    __global ${to} *C, long coff, long sc, long scn,
    __global const ${to} *D, long doff, long sd, long sdn, int has_bias, ${acc} alpha, ${acc} beta,
    long M, long N, long K, long BM, long batches, long inner, long kstep,
    long a0, long a1, long b0, long b1, long c0, long c1, long d0, long d1)
{
% if stage:
    __local ${acc} xl[${X_ROOM}] __attribute__((aligned(64)));
% endif
% if body in ("cols", "narrow"):
    __local ${acc} sum[${M_ROOM}] __attribute__((aligned(64)));
% endif
    const long mb = get_global_id(0) * BM, me = MIN(mb + BM, M);
    for (long z = get_global_id(1); z < batches; z += get_global_size(1)) {
    const long zo = z / inner, zi = z % inner;
    __global const ${ta} *Az = A + aoff + zo * a0 + zi * a1, *x = X + xoff + zo * b0 + zi * b1;
    __global ${to} *c = C + coff + zo * c0 + zi * c1;
    __global const ${to} *d = D + doff + zo * d0 + zi * d1;
    const long Kz = kstep ? MIN(kstep, K - zi * kstep) : K;
% if body == "rows":
% if stage:
    for (long kb = 0; kb == 0 || kb < Kz; kb += ${X_ROOM}) {
    const long kc = MIN(Kz - kb, (long)${X_ROOM});
    long at = 0;
    if (sx == 1)
        for (; at + ${V} <= kc; at += ${V})
            *(__local ${av} *)(xl + at) = ${loadv("x + kb + at")};
    for (; at < kc; at++)
        xl[at] = ${load("x[(kb + at) * sx]")};
% else:
    const long kb = 0, kc = Kz;
    {
% endif
    for (long m = mb; m < me; m += ${R}) {
        const long m0 = MAX(MIN(m, M - ${R}), 0L);
        __global const ${ta} *a = Az + m0 * sam + kb;
% for r in range(R):
% for u in range(U):
        ${av} t${r}_${u} = 0;
% endfor
        ${acc} y${r} = 0;
% endfor
        long k = 0;
% for r in range(R):
        for (k = 0; k + ${U * V} <= kc; k += ${U * V}) {
% for u in range(U):
            t${r}_${u} = ${f"*(__local const {av}_u *)(xl + k + {u * V})" if stage else loadv(f"x + k + {u * V}")} * ${loadv(f"a + {r} * sam + k + {u * V}")} + t${r}_${u};
% endfor
        }
% endfor
        for (; k < kc; k++) {
            const ${acc} v = ${"xl[k]" if stage else load("x[k]")};
% for r in range(R):
            y${r} = v * ${load(f"a[{r} * sam + k]")} + y${r};
% endfor
        }
% for r in range(R):
        {
% for u in range(1, U):
            t${r}_0 += t${r}_${u};
% endfor
<% half = V // 2; src = f"t{r}_0" %>\
% while half >= 2:
            const ${acc}${half} h${half} = ${src}.lo + ${src}.hi;
<% src = f"h{half}"; half //= 2 %>\
% endwhile
            ${acc} y = y${r} + (${src}.lo + ${src}.hi);
            const long i = m0 + ${r};
            if (i >= m && i < me) {
                y *= alpha;
% if stage:
                if (kb) y += ${load("c[i * sc]", "to")};
                else
% endif
                if (has_bias) y += beta * ${load("d[i * sd]", "to")};
                ${store("y", "c", "i * sc")};
            }
        }
% endfor
    }
    }
% elif body == "narrow":
## The last vector is moved back to end with the row, so it may overlap the one before.
    __global const ${ta} *a = Az;
% for w in range(R):
    const long at${w} = ${f"M - {V}" if w == R - 1 else w * V};
    ${av} y${w} = 0;
% endfor
    for (long k = 0; k < Kz; k++, a += sak) {
        const ${acc} xk = ${load("x[k * sx]")};
% for w in range(R):
        y${w} = xk * ${loadv(f"a + at{w}")} + y${w};
% endfor
    }
% for w in range(R):
    *(__local ${av}_u *)(sum + at${w}) = y${w};
% endfor
${finish("0", "M")}\
% else:
    for (long m = mb; m < me; m += ${M_ROOM}) {
        const long width = MIN(me - m, (long)${M_ROOM}), full = width / ${V} * ${V};
        for (long i = 0; i < width; i++)
            sum[i] = 0;
        long k = 0;
        __global const ${ta} *a = Az + m;
% for T in (4, 1):
        for (; k + ${T} <= Kz; k += ${T}, a += ${T} * sak) {
% for t in range(T):
            const ${acc} x${t} = ${load(f"x[(k + {t}) * sx]")};
% endfor
            long i = 0;
            for (; i < full; i += ${V}) {
                ${av} y = *(__local const ${av}_u *)(sum + i);
% for t in range(T):
                y = x${t} * ${loadv(f"a + {t} * sak + i")} + y;
% endfor
% if ahead and T > 1:
% for t in range(T):
                CLT_PREFETCH_BESIDE(a + ${T + t} * sak + i);
% endfor
% endif
                *(__local ${av}_u *)(sum + i) = y;
            }
            for (; i < width; i++) {
                ${acc} y = sum[i];
% for t in range(T):
                y = x${t} * ${load(f"a[{t} * sak + i]")} + y;
% endfor
                sum[i] = y;
            }
        }
% endfor
${finish("m", "width")}\
    }
% endif
    }
}
