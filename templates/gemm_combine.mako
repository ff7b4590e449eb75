<%doc>
Second pass of a product cut along K or kept in a wider type: out = alpha * (sum of `pieces` partial results, in order) +
beta * bias. Partial results are dense: [batch, piece, M, N]. Work-item (x, y, z): columns x*span .. of row y of matrix z.
Variables: fn to acc load store headers.
</%doc>
% for h in headers:
${h}
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
    for (long j = jb; j < je; j++) {
        ${acc} y = p[j];
        for (long s = 1; s < pieces; s++)
            y += p[s * M * N + j];
        y *= alpha;
        if (has_bias) y += beta * ${load("d[j * sdn]", "to")};
        ${store("y", "c", "j * scn")};
    }
}
