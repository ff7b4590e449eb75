<%doc>
Copies bfloat16 matrices to rows contiguous along K for products of tiles (amx.mako), where otherwise each of several
blocks of columns would make the same copy. Work-item (x, y) copies BM rows of matrix y, 32 steps of K for 128 rows at a
time, so that cache lines read and written stay cached until they are used up. The copy's rows are KP numbers apart.
Variables: fn headers.
</%doc>
<%namespace name="pack" file="amx_pack.mako"/>\
% for h in headers:
${h}
% endfor
${pack.helpers()}\
${pack.pack_strip('__global')}\
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ushort *A, long aoff, long sam, long sak, __global int *Q, long M, long K, long KP, long BM, long inner, long a0, long a1)
{
    const long z = get_global_id(1), strips = (M + 31) / 32 * 32, from = get_global_id(0) * BM;
    __global const ushort *Az = A + aoff + z / inner * a0 + z % inner * a1;
    const long end = MIN(from + BM, M);
    for (long near = from; near < end; near += 128)
        for (long k = 0; k < K; k += 32)
            for (long i = near; i < MIN(near + 128, end); i += 32)
                pack_strip(Az + i * sam + k * sak, sam, sak, MIN(K - k, 32L), MIN(M - i, 32L), KP / 2, Q + (z * strips + i) * (KP / 2) + k / 2);
}
