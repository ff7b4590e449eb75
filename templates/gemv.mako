<%doc>
Matrix times vector, limited by the memory the matrix comes from: out[m] = alpha * sum_k A[m, k] x[k] + beta * bias[m].
One of three bodies:
  rows   work-item (y, z): rows y*BM .. ; A adjacent along k; R rows at a time share x, each summed in U vectors of V lanes.
  cols   work-item (y, z): outputs y*BM ..; A adjacent along m; M_ROOM sums in local memory, four k at a time.
  group  work-group (y, z) of G lanes: row y, lanes stride over k, tree of sums in local memory.
x is read at any stride in cols and group; rows with stage copies it to local memory first, X_ROOM elements at a time.
Variables: fn body ta to acc load loadv store unaligned V R U G stage X_ROOM M_ROOM headers.
</%doc>
<% av = f"{acc}{V}" %>\
% for h in headers:
${h}
% endfor
% if body != "group":
% for t, size in unaligned:
typedef ${t}${V} ${t}${V}_u __attribute__((aligned(${size})));
% endfor
% endif
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void ${fn}(__global const ${ta} *A, long aoff, long sam, long sak,
    __global const ${ta} *X, long xoff, long sx,
    __global ${to} *C, long coff, long sc,
    __global const ${to} *D, long doff, long sd, int has_bias, ${acc} alpha, ${acc} beta,
    long M, long K, long BM, long batches, long inner, long kstep,
    long a0, long a1, long b0, long b1, long c0, long c1, long d0, long d1)
{
% if stage:
    __local ${acc} xl[${X_ROOM}] __attribute__((aligned(64)));
% endif
% if body == "cols":
    __local ${acc} sum[${M_ROOM}] __attribute__((aligned(64)));
% endif
% if body == "group":
    __local ${acc} part[${G}];
    const int lane = get_local_id(0);
    const long mb = get_group_id(0), me = M, step = get_num_groups(0);
% else:
    const long mb = get_global_id(0) * BM, me = min(mb + BM, M);
% endif
    for (long z = get_global_id(1); z < batches; z += get_global_size(1)) {
    const long zo = z / inner, zi = z % inner;
    __global const ${ta} *Az = A + aoff + zo * a0 + zi * a1, *x = X + xoff + zo * b0 + zi * b1;
    __global ${to} *c = C + coff + zo * c0 + zi * c1;
    __global const ${to} *d = D + doff + zo * d0 + zi * d1;
    const long Kz = kstep ? min(kstep, K - zi * kstep) : K;
% if body == "rows":
% if stage:
    for (long kb = 0; kb == 0 || kb < Kz; kb += ${X_ROOM}) {
    const long kc = min(Kz - kb, (long)${X_ROOM});
    for (long k = 0; k < kc; k++)
        xl[k] = ${load("x[(kb + k) * sx]")};
% else:
    const long kb = 0, kc = Kz;
    {
% endif
    for (long m = mb; m < me; m += ${R}) {
        const long m0 = max(min(m, M - ${R}), 0L);
        __global const ${ta} *a = Az + m0 * sam + kb;
% for r in range(R):
% for u in range(U):
        ${av} s${r}_${u} = 0;
% endfor
        ${acc} y${r} = 0;
% endfor
        long k = 0;
        for (; k + ${U * V} <= kc; k += ${U * V}) {
% for u in range(U):
            {
% if stage:
                const ${av} v = *(__local const ${av}_u *)(xl + k + ${u * V});
% else:
                const ${av} v = ${loadv(f"x + k + {u * V}")};
% endif
% for r in range(R):
                s${r}_${u} = v * ${loadv(f"a + {r} * sam + k + {u * V}")} + s${r}_${u};
% endfor
            }
% endfor
        }
        for (; k < kc; k++) {
            const ${acc} v = ${"xl[k]" if stage else load("x[k]")};
% for r in range(R):
            y${r} = v * ${load(f"a[{r} * sam + k]")} + y${r};
% endfor
        }
% for r in range(R):
        {
% for u in range(1, U):
            s${r}_0 += s${r}_${u};
% endfor
<% half = V // 2; src = f"s{r}_0" %>\
% while half >= 2:
            const ${acc}${half} h${half} = ${src}.lo + ${src}.hi;
<% src = f"h{half}"; half //= 2 %>\
% endwhile
            y${r} += ${src}.lo + ${src}.hi;
            const long i = m0 + ${r};
            if (i >= m && i < me) {
                y${r} *= alpha;
% if stage:
                if (kb) y${r} += ${load("c[i * sc]", "to")};
                else
% endif
                if (has_bias) y${r} += beta * ${load("d[i * sd]", "to")};
                ${store(f"y{r}", "c", "i * sc")};
            }
        }
% endfor
    }
    }
% elif body == "cols":
    for (long m = mb; m < me; m += ${M_ROOM}) {
        const long width = min(me - m, (long)${M_ROOM}), full = width / ${V} * ${V};
        for (long n = 0; n < width; n++)
            sum[n] = 0;
        long k = 0;
        __global const ${ta} *a = Az + m;
% for S in (4, 1):
        for (; k + ${S} <= Kz; k += ${S}, a += ${S} * sak) {
% for s in range(S):
            const ${acc} x${s} = ${load(f"x[(k + {s}) * sx]")};
% endfor
            long n = 0;
            for (; n < full; n += ${V}) {
                ${av} y = *(__local const ${av}_u *)(sum + n);
% for s in range(S):
                y = x${s} * ${loadv(f"a + {s} * sak + n")} + y;
% endfor
                *(__local ${av}_u *)(sum + n) = y;
            }
            for (; n < width; n++) {
                ${acc} y = sum[n];
% for s in range(S):
                y = x${s} * ${load(f"a[{s} * sak + n]")} + y;
% endfor
                sum[n] = y;
            }
        }
% endfor
        for (long n = 0; n < width; n++) {
            const long i = m + n;
            ${acc} y = sum[n] * alpha;
            if (has_bias) y += beta * ${load("d[i * sd]", "to")};
            ${store("y", "c", "i * sc")};
        }
    }
% else:
    for (long m = mb; m < me; m += step) {
        __global const ${ta} *a = Az + m * sam;
        ${acc} y = 0;
        for (long k = lane; k < Kz; k += ${G})
            y = ${load("x[k * sx]")} * ${load("a[k * sak]")} + y;
        part[lane] = y;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int w = ${G // 2}; w > 0; w /= 2) {
            if (lane < w) part[lane] += part[lane + w];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (lane == 0) {
            y = part[0] * alpha;
            if (has_bias) y += beta * ${load("d[m * sd]", "to")};
            ${store("y", "c", "m * sc")};
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
% endif
    }
}
