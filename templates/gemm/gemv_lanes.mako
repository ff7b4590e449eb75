<%doc>
Matrix times vector where a work-item is a lane: out[m] = alpha * sum_k A[m, k] x[k] + beta * bias[m], limited by the
memory A comes from. A work-group of G lanes makes R results (a power of two) with G / R lanes each, which walk K side
by side, each with U loads of A in flight; a tree in local memory adds up their sums. Neighbouring lanes read along K
(`along`) or down the rows, whichever is adjacent in memory. `unit` says that the vector is contiguous, and A's rows
are, where they are read along K: that saves address arithmetic and registers.
Variables: fn ta to acc load store G R U along unit headers.
</%doc>
<%
parts = G // R
sx, sak = 1 if unit else "sx", 1 if unit and along else "sak"
%>\
% for h in headers:
${h}
% endfor
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void ${fn}(__global const ${ta} *A, long aoff, long sam, long sak,
    __global const ${ta} *X, long xoff, long sx, long sxn,
    __global ${to} *C, long coff, long sc, long scn,
    __global const ${to} *D, long doff, long sd, long sdn, int has_bias, ${acc} alpha, ${acc} beta,
    long M, long K, long batches, long inner, long kstep,
    long a0, long a1, long b0, long b1, long c0, long c1, long d0, long d1)
{
    __local ${acc} sums[${G}];
    const int lane = get_local_id(0), ${f"row = lane / {parts}, part = lane % {parts}" if along else f"row = lane % {R}, part = lane / {R}"};
    const long m = get_group_id(0) * (long)${R} + row;
    for (long z = get_group_id(1); z < batches; z += get_num_groups(1)) {
        const long zo = z / inner, zi = z % inner, Kz = kstep ? min(kstep, K - zi * kstep) : K;
        __global const ${ta} *a = A + aoff + zo * a0 + zi * a1 + min(m, M - 1) * sam + part * ${sak};
        __global const ${ta} *x = X + xoff + zo * b0 + zi * b1 + part * ${sx};
        ${acc} y = 0;
        long k = part;
        for (; k + ${(U - 1) * parts} < Kz; k += ${U * parts}, a += ${U * parts} * ${sak}, x += ${U * parts} * ${sx}) {
% for u in range(U):
            const ${acc} a${u}_ = ${load(f"a[{u * parts} * {sak}]")}, x${u} = ${load(f"x[{u * parts} * {sx}]")};
% endfor
% for u in range(U):
            y = x${u} * a${u}_ + y;
% endfor
        }
% if unit and along:
        if (k < Kz) { // the remainder, also with all loads in flight at once
            const int left = (int)(Kz - k);
% for u in range(U - 1):
            const ${acc} a${u}_ = ${u * parts} < left ? ${load(f"a[{u * parts}]")} : 0, x${u} = ${u * parts} < left ? ${load(f"x[{u * parts}]")} : 0;
% endfor
% for u in range(U - 1):
            y = x${u} * a${u}_ + y;
% endfor
        }
% else:
        for (; k < Kz; k += ${parts}, a += ${parts} * ${sak}, x += ${parts} * ${sx})
            y = ${load("*x")} * ${load("*a")} + y;
% endif
        sums[lane] = y;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int w = ${parts // 2}; w > 0; w /= 2) {
            if (part < w) sums[lane] += sums[lane + w * ${1 if along else R}];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (part == 0 && m < M) {
            __global ${to} *c = C + coff + zo * c0 + zi * c1;
            y = sums[lane] * alpha;
            if (has_bias) y += beta * ${load("D[doff + zo * d0 + zi * d1 + m * sd]", "to")};
            ${store("y", "c", "m * sc")};
        }
    }
}
