<%doc>
Second pass, on a CPU, of a split-K product or one accumulated in a wider type: out = alpha * (sum of `pieces` partial
results, in order) + beta * bias. Partial results are dense: [batch, piece, M, N]. Work-item (x, y, z): columns x*span
.. of row y of matrix z.
Variables: fn to acc V unaligned load loadv store storev headers.
</%doc>
<%
F = f"{acc}{V}"
%>\
% for h in headers:
${h}
% endfor
% for t, size in unaligned:
typedef ${t}${V} ${t}${V}_u __attribute__((aligned(${size})));
% endfor
__kernel void ${fn}(__global const ${acc} *P, long pieces, __global ${to} *C, long coff, long scm, long scn,
    __global const ${to} *D, long doff, long sdm, long sdn, int has_bias, ${acc} alpha, ${acc} beta,
    long M, long N, long span, long inner, long c0, long c1, long d0, long d1)
{
    const long z = get_global_id(2), zo = z / inner, zi = z % inner, i = get_global_id(1);
    const long jb = get_global_id(0) * span, je = min(jb + span, N);
    __global const ${acc} *p = P + (z * pieces * M + i) * N;
    __global ${to} *c = C + coff + zo * c0 + zi * c1 + i * scm;
    __global const ${to} *d = D + doff + zo * d0 + zi * d1 + i * sdm;
    long j = jb;
    if (scn == 1 && (!has_bias || (ulong)sdn <= 1)) {
        for (; j + ${V} <= je; j += ${V}) {
            ${F} y = *(__global const ${F}_u *)(p + j);
            for (long s = 1; s < pieces; s++)
                y += *(__global const ${F}_u *)(p + s * M * N + j);
            y *= alpha;
            if (has_bias) y += beta * (sdn ? ${loadv("d + j", "to")} : (${F})(${load("*d", "to")}));
            ${storev("y", "c + j")};
        }
    }
    for (; j < je; j++) {
        ${acc} y = p[j];
        for (long s = 1; s < pieces; s++)
            y += p[s * M * N + j];
        y *= alpha;
        if (has_bias) y += beta * ${load("d[j * sdn]", "to")};
        ${store("y", "c", "j * scn")};
    }
}
