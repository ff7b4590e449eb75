<%doc>
Long rows times a few vectors, on a CPU, limited by the memory that the rows come from: out[m, n] = alpha * sum_k A[m,
k] X[k, n] + beta * bias[m, n].

Rows of A and columns of X are contiguous along k. Work-item (y, z): rows y*BM .. of matrix z, R at a time. K is walked
in blocks of KC numbers, for which the columns of X stay in L1; R rows by S columns are one register tile of
accumulators, vectors of V lanes, which are kept in local memory between blocks. Meanwhile the next R rows are
prefetched, P of them during each tile, because the hardware prefetcher follows only one run of reads within a page.
Finally V accumulators at a time are reduced over their lanes to one vector of results. Where a block's length is no
multiple of 2V, its last 2V numbers are read as an overlapping step, with those counted already masked. Rows and columns
past the end repeat the last ones. With `finish` a row of results goes through the epilogue instead of being stored.
Variables: fn ta to acc load loadv store unaligned V R S P columns headers finish.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%
av = f"{acc}{V}"
mask = f"{'long' if acc in ('double', 'ulong') else 'int'}{V}"
tile = [(r, s) for r in range(R) for s in range(S)]
stages = V.bit_length() - 1
tiles = -(-columns // S)
room = -(-tiles * R * S // V) * V
%>\
<%def name="step(masked)">\
% for u in range(2):
                    {
% for s in range(S):
                        const ${av} v${s} = ${own(loadv(f"x{s} + {u * V}"), u, masked)};
% endfor
% for r in range(R):
                        {
                            const ${av} w = ${own(loadv(f"a{r} + k + {u * V}"), u, masked)};
% for s in range(S):
                            t${r}_${s} = v${s} * w + t${r}_${s};
% endfor
                        }
% endfor
                    }
% endfor
</%def>\
<%def name="own(value, u, masked)" filter="trim">
${f"own{u} ? {value} : ({av})(0)" if masked else value}
</%def>\
% if finish:
${finish.text}
typedef ${acc}${finish.lanes} run_u __attribute__((aligned(4)));
% endif
#pragma OPENCL FP_CONTRACT ON
% for h in headers:
${h}
% endfor
#define PLAIN _Pragma("clang loop vectorize(disable)") _Pragma("clang loop unroll(disable)")
% for t, size in unaligned:
typedef ${t}${V} ${t}${V}_u __attribute__((aligned(${size})));
% endfor
#define CLT_WHOLE
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ${fn}(__global const ${ta} *A, long aoff, long sam, long sak,
    __global const ${ta} *X, long xoff, long sx, long sxn,
    __global ${to} *C, long coff, long sc, long scn,
    __global const ${to} *D, long doff, long sd, long sdn, int has_bias, ${acc} alpha, ${acc} beta,
    long M, long N, long K, long BM, long KC, long far, long batches, long inner, long kstep,
    long a0, long a1, long b0, long b1, long c0, long c1, long d0, long d1${''.join(f', {p}' for p in finish.parameters) if finish else ''})
{
    __local ${acc} sums[${room * V}] __attribute__((aligned(64))), results[${room}] __attribute__((aligned(64)));
% if finish:
    __local ${acc} line[${-(-columns // finish.lanes) * finish.lanes}] __attribute__((aligned(64)));
% endif
    const long mb = get_global_id(0) * BM, me = MIN(mb + BM, M), tiles = (N + ${S - 1}) / ${S};
    for (long z = get_global_id(1); z < batches; z += get_global_size(1)) {
    const long zo = z / inner, zi = z % inner;
    __global const ${ta} *Az = A + aoff + zo * a0 + zi * a1, *Xz = X + xoff + zo * b0 + zi * b1;
    __global ${to} *c = C + coff + zo * c0 + zi * c1;
    __global const ${to} *d = D + doff + zo * d0 + zi * d1;
    const long Kz = kstep ? MIN(kstep, K - zi * kstep) : K;
    for (long m = mb; m < me; m += ${R}) {
        for (long kb = 0; kb == 0 || kb < Kz; kb += KC) {
            const long kc = MIN(KC, Kz - kb);
            const ${mask} counted = (${mask})(${2 * V} - kc % ${2 * V});
% for u in range(2):
            const ${mask} own${u} = (${mask})(${', '.join(str(u * V + k) for k in range(V))}) >= counted;
% endfor
% for r in range(R):
            __global const ${ta} *const a${r} = Az + ${f"MIN(m + {r}, M - 1)" if r else "m"} * sam + kb;
% endfor
            __local ${acc} *sum = sums;
            for (long t = 0; t < tiles; t++, sum += ${R * S * V}) {
% for s in range(S):
                __global const ${ta} *x${s} = Xz + ${f"MIN(t * {S} + {s}, N - 1)" if s else f"t * {S}"} * sxn + kb;
% endfor
% for p in range(P):
                __global const ${ta} *const p${p} = a0 + (MIN(t + ${p} * tiles, ${R - 1}L) + far) * sam;
% endfor
% for r, s in tile:
                ${av} t${r}_${s} = 0;
% endfor
                if (kb) {
% for i, (r, s) in enumerate(tile):
                    t${r}_${s} = *(__local const ${av} *)(sum + ${i * V});
% endfor
                }
                long k = 0;
                for (; k + ${2 * V} <= kc; k += ${2 * V}, ${', '.join(f'x{s} += {2 * V}' for s in range(S))}) {
% for p in range(P):
                    CLT_PREFETCH(p${p} + k);
% endfor
${step(False)}\
                }
                if (k < kc && k) {
                    k = kc - ${2 * V};
% for s in range(S):
                    x${s} += kc % ${2 * V} - ${2 * V};
% endfor
${step(True)}\
                    k = kc;
                }
% for i, (r, s) in enumerate(tile):
                *(__local ${av} *)(sum + ${i * V}) = t${r}_${s};
% endfor
                ## Reached only where the block has fewer than 2V numbers; otherwise the masked step has set k = kc.
                PLAIN
                for (; k < kc; k++, ${', '.join(f'x{s}++' for s in range(S))}) {
% for i, (r, s) in enumerate(tile):
                    sum[${i * V}] = sum[${i * V}] + ${load(f"a{r}[k]")} * ${load(f"x{s}[0]")};
% endfor
                }
            }
        }
        const long rows = MIN(me - m, (long)${R}), all = tiles * ${R * S};
        PLAIN
        for (long e = 0; e < all; e += ${V}) {
            __local const ${av} *sum = (__local const ${av} *)(sums + e * ${V});
% for k in range(V):
            const ${av} s0_${k} = sum[${k}];
% endfor
${lane_memory.joined(av, V, 12)}\
            *(__local ${av} *)(results + e) = s${stages}_0 * alpha;
        }
% if finish:
        PLAIN
        for (long i = 0; i < rows; i++) {
            PLAIN
            for (long n = 0; n < N; n++) {
                line[n] = results[n / ${S} * ${R * S} + i * ${S} + n % ${S}];
                if (has_bias) line[n] = line[n] + beta * ${load("d[(m + i) * sd + n * sdn]", "to")};
            }
            PLAIN
            for (long n = 0; n < N; n += ${finish.lanes})
                finish(m + i, n, (int)MIN(N - n, (long)${finish.lanes}), *(__local const run_u *)(line + n), ${', '.join(finish.names)});
        }
% else:
        PLAIN
        for (long n = 0; n < N; n++) {
            __local const ${acc} *result = results + n / ${S} * ${R * S} + n % ${S};
            PLAIN
            for (long i = 0; i < rows; i++) {
                ${acc} y = result[i * ${S}];
                if (has_bias) y += beta * ${load("d[(m + i) * sd + n * sdn]", "to")};
                ${store("y", "c", "(m + i) * sc + n * scn")};
            }
        }
% endif
    }
    }
}
