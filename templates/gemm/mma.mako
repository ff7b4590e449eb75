<%doc>
Products by a GPU's matrix units, of 16-bit floats or of float64. A work-group of T work-items computes a tile of BM x BN
results, in steps of BK along K; each warp of 32 work-items computes WM x WN results of the tile. With KS > 1 there are
KS such sets of warps: a step's pieces of 16 along K are dealt out to the sets in turn, and the sets' sums are added in
order at the end. Local memory is a ring of STAGES steps: while one step is multiplied, the next ones are being copied.

`ways` says how each operand is read. "k": it is contiguous along K, in aligned units of E numbers (16 bytes). "i": the
same along its other dim. "any": neither, number by number (16-bit floats only). A step of an operand is stored in local
memory in units of E numbers, along K ("k", "any") or along the other dim ("i"), in the order that `unit` gives.

With `direct` matrix units multiply, else plain loops over the same tiles (for tests). Tiles are taken in panels of PANEL
tile rows, so that tiles computed at the same time share operands. With `finish` only the results of the epilogue are
stored; the product is rounded before the epilogue as if it had been stored.

Variables: fn code to acc ways direct units unit number value load store BM BN BK WM WN KS STAGES finish headers.
</%doc>\
<%
PANEL = 8
long = code == 'f64'
E, element, room = (2, 'double', 8) if long else (8, 'ushort', 4)
BYTES = 16 // E
WARPS = BM // WM * (BN // WN)
T = WARPS * KS * 32
ROWS = dict(a=BM, b=BN)
MT, NT = WM // 16, WN // 8
STAGE = (BM + BN) * BK // E
START = dict(a=0, b=BM * BK // E)
LOW = dict(a="i0", b="j0")
ALONG = dict(a=("sam", "sak"), b=("sbn", "sbk"))
COUNT = dict(a=BM * BK // E // T, b=BN * BK // E // T)
wide = to == acc
PITCH = BN + 8
# How many blocks of 16 rows of each warp's sums go through local memory at a time: as many as fit into the ring's memory.
SL = MT
while KS * (BM // WM * 16 * SL) * PITCH * room > STAGE * STAGES * 16:
    SL //= 2
SLICE = BM // WM * 16 * SL
UNITS = {side: ROWS[side] // E if ways[side] == "i" else BK // E for side in "ab"}
# `placed` and `one` return OpenCL C: the index of a unit in a step of operand `side` ("a" or "b"), the value of a number
# in it. What both call a row is an index along the operand's own dim, M or N; with way "i", `placed` takes one along K.
def placed(side, r, c):
    """Where unit c of row r of a step lies; rows are K's for "i", the matrix's own for others."""
    return unit(r, c, UNITS[side])
def one(side, r, k):
    """The number of row r at k."""
    at = number(k, r, UNITS[side]) if ways[side] == "i" else number(r, k, UNITS[side])
    return f"t{side}[{at}]" if long else value(f"t{side} + {at}", code)
%>\
% if finish:
${finish.text}
% endif
% for h in headers:
${h}
% endfor
${units}
#pragma OPENCL FP_CONTRACT ON
__kernel __attribute__((reqd_work_group_size(${T}, 1, 1)))
void ${fn}(__global const ${element} *A, long aoff, long sam, long sak,
    __global const ${element} *B, long boff, long sbk, long sbn,
    __global ${to} *C, long coff, long scm, long scn,
    __global const ${to} *D, long doff, long sdm, long sdn, int has_bias, ${acc} alpha, ${acc} beta,
    long M, long N, long K, int batches, int inner, long kstep, int fours, int across,
    long a0, long a1, long b0, long b1, long c0, long c1, long d0, long d1${''.join(f', {p}' for p in finish.parameters) if finish else ''})
{
    __local uint4 tiles[${STAGE * STAGES}];
    __local ${acc} *const slice = (__local ${acc} *)tiles;
    const clt_place all = CLT_PLACE(tiles);
    const int t = get_local_id(0), part = t / ${WARPS * 32}, warp = t / 32 % ${WARPS}, lane = t % 32;
    const int wi = warp / ${BN // WN} * ${WM}, wj = warp % ${BN // WN} * ${WN};
    const int down = (int)((M + ${BM - 1}) / ${BM}), id = get_group_id(0), first = id / (${PANEL} * across) * ${PANEL};
    const int high = min(${PANEL}, down - first), inside = id - first * across;
    const long i0 = (long)(first + inside % high) * ${BM}, j0 = (long)(inside / high) * ${BN};
    const int rows_a = (int)min(M - i0, (long)${BM}), rows_b = (int)min(N - j0, (long)${BN});
    for (int z = get_group_id(2); z < batches; z += get_num_groups(2)) {
        const long zo = z / inner, zi = z % inner;
        const int Kz = (int)(kstep ? min(kstep, K - zi * kstep) : K), steps = (Kz + ${BK - 1}) / ${BK};
% for s in "ab":
        __global const ${element} *p${s} = ${s.upper()} + ${s}off + zo * ${s}0 + zi * ${s}1 + ${LOW[s]} * ${ALONG[s][0]};
% for x in range(COUNT[s]):
        const int r${s}${x} = (t + ${x * T}) / ${UNITS[s]}, u${s}${x} = (t + ${x * T}) % ${UNITS[s]};
        const int at_${s}${x} = ${START[s]} + ${placed(s, f"r{s}{x}", f"u{s}{x}")};
% if ways[s] == "i":
        const long d${s}${x} = r${s}${x} * ${ALONG[s][1]} + ${E} * u${s}${x};
        const int n${s}${x} = clamp(rows_${s} - ${E} * u${s}${x}, 0, ${E});
% else:
        const long d${s}${x} = r${s}${x} * ${ALONG[s][0]} + ${E} * u${s}${x}${'' if ways[s] == 'k' else f' * {ALONG[s][1]}'};
% endif
% endfor
% endfor
<%def name="fetch(step, stage)">\
            {
                const int left = Kz - (${step}) * ${BK};
                const int base = (${stage}) * ${STAGE};
% for s in "ab":
% for x in range(COUNT[s]):
% if ways[s] == "i":
                CLT_COPY(CLT_UNIT(all, base + at_${s}${x}), p${s} + d${s}${x}, ${BYTES} * (r${s}${x} < left ? n${s}${x} : 0));
% elif ways[s] == "k":
                CLT_COPY(CLT_UNIT(all, base + at_${s}${x}), p${s} + d${s}${x}, ${BYTES} * (r${s}${x} < rows_${s} ? clamp(left - ${E} * u${s}${x}, 0, ${E}) : 0));
% else:
                {
                    const int n = r${s}${x} < rows_${s} ? left - ${E} * u${s}${x} : 0;
                    __global const ${element} *q = p${s} + d${s}${x};
                    const uint ${', '.join(f'e{e} = {e} < n ? q[{e} * {ALONG[s][1]}] : 0' for e in range(8))};
                    tiles[base + at_${s}${x}] = (uint4)(${', '.join(f'e{e} | e{e + 1} << 16' for e in range(0, 8, 2))});
                }
% endif
% endfor
                p${s} += ${f'{BK}' if ways[s] == 'k' else f'{BK} * {ALONG[s][1]}'};
% endfor
            }
</%def>\
% for i in range(MT):
        ${acc} ${', '.join(f's{i}_{j}_{e} = 0' for j in range(NT) for e in range(4))};
% endfor
% for st in range(STAGES - 1):
        if (${st} < steps)
${fetch(st, st)}\
        CLT_COPIES_END();
% endfor
        for (int step = 0, stage = 0; step < steps; step++) {
            CLT_COPIES_WAIT(${STAGES - 2});
            barrier(CLK_LOCAL_MEM_FENCE);
            if (step + ${STAGES - 1} < steps)
${fetch(f"step + {STAGES - 1}", f"stage == 0 ? {STAGES - 1} : stage - 1")}\
            CLT_COPIES_END();
% if long:
            __local const double *const ta = (__local const double *)(tiles + stage * ${STAGE}), *const tb = ta + ${E * START["b"]};
% else:
            const clt_place ta = CLT_UNIT(all, stage * ${STAGE}), tb = CLT_UNIT(ta, ${START["b"]});
% endif
            stage = stage == ${STAGES - 1} ? 0 : stage + 1;
% if direct and long:
% for kk in range(BK // 16 // KS):
<% at = f'{kk * KS} + part' if KS > 1 else f'{kk}' %>\
            {
                const int k = 16 * (${at}) + lane % 4;
% for i in range(MT):
                const double ${', '.join(f'x{i}_{2 * q + h} = ' + one('a', f'wi + {16 * i + 8 * h} + lane / 4', f'k + {4 * q}') for q in range(4) for h in range(2))};
% endfor
% for j in range(NT):
                const double ${', '.join(f'y{j}_{q} = ' + one('b', f'wj + {8 * j} + lane / 4', f'k + {4 * q}') for q in range(4))};
% endfor
% for i in range(MT):
% for j in range(NT):
                clt_multiply_f64(s${i}_${j}_, x${i}_, y${j}_);
% endfor
% endfor
            }
% endfor
% elif direct:
% for kk in range(BK // 16 // KS):
<% at = f'{kk * KS} + part' if KS > 1 else f'{kk}' %>\
            {
                uint ${', '.join(f'x{i}_{e}' for i in range(MT) for e in range(4))};
                uint ${', '.join(f'y{j}_{e}' for j in range(NT) for e in range(2))};
% for i in range(MT):
<% regs = ", ".join(f"x{i}_{e}" for e in range(4)) %>\
% if ways["a"] == "i":
                clt_columns(${regs}, CLT_UNIT(ta, ${placed("a", f"16 * ({at}) + lane / 16 * 8 + lane % 8", f"(wi + {16 * i}) / 8 + lane / 8 % 2")}));
% else:
                clt_rows(${regs}, CLT_UNIT(ta, ${placed("a", f"wi + {16 * i} + lane % 16", f"2 * ({at}) + lane / 16")}));
% endif
% endfor
% for j in range(0, NT, 2):
<% regs = f"y{j}_0, y{j}_1, y{j + 1}_0, y{j + 1}_1" %>\
% if ways["b"] == "i":
                clt_columns(${regs}, CLT_UNIT(tb, ${placed("b", f"16 * ({at}) + lane / 8 % 2 * 8 + lane % 8", f"wj / 8 + {j} + lane / 16")}));
% else:
                clt_rows(${regs}, CLT_UNIT(tb, ${placed("b", f"wj + {8 * j} + lane / 16 * 8 + lane % 8", f"2 * ({at}) + lane / 8 % 2")}));
% endif
% endfor
% for i in range(MT):
% for j in range(NT):
                clt_multiply_${code}(s${i}_${j}_, x${i}_, y${j}_0, y${j}_1);
% endfor
% endfor
            }
% endfor
% else:
            for (int k = 16 * part; k < ${BK}; k = k % 16 == 15 ? k + ${16 * KS - 15} : k + 1) {
                ${acc} ${', '.join(f'x{i}_{h}' for i in range(MT) for h in range(2))}, ${', '.join(f'y{j}_{h}' for j in range(NT) for h in range(2))};
% for i in range(MT):
% for h in range(2):
                x${i}_${h} = ${one("a", f"wi + {16 * i + 8 * h} + lane / 4", "k")};
% endfor
% endfor
% for j in range(NT):
% for h in range(2):
                y${j}_${h} = ${one("b", f"wj + {8 * j + h} + lane % 4 * 2", "k")};
% endfor
% endfor
% for i in range(MT):
% for j in range(NT):
                ${' '.join(f's{i}_{j}_{e} += x{i}_{e // 2} * y{j}_{e % 2};' for e in range(4))}
% endfor
% endfor
            }
% endif
        }
        __global ${to} *Cz = C + coff + zo * c0 + zi * c1;
        __global const ${to} *Dz = D + doff + zo * d0 + zi * d1;
        ## Sums go through local memory, as many rows of each warp at a time as fit, so that neighbouring lanes store
        ## adjacent results.
% for first in range(0, MT, SL):
        barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(SL):
% for j in range(NT):
% for h in range(2):
        *(__local ${acc}2 *)(slice + (part * ${SLICE} + wi / ${WM} * ${16 * SL} + lane / 4 + ${16 * i + 8 * h}) * ${PITCH} + wj + ${8 * j} + lane % 4 * 2) = (${acc}2)(s${first + i}_${j}_${2 * h}, s${first + i}_${j}_${2 * h + 1});
% endfor
% endfor
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int e = t; e < ${SLICE * BN // 4}; e += ${T}) {
            const int r = e / ${BN // 4}, i = r / ${16 * SL} * ${WM} + ${16 * first} + r % ${16 * SL}, j = e % ${BN // 4} * 4;
            if (i < rows_a && j < rows_b) {
                const long ci = (i0 + i) * scm;
                ${acc}4 y = *(__local ${acc}4 *)(slice + r * ${PITCH} + j);
% for part in range(1, KS):
                y += *(__local ${acc}4 *)(slice + (r + ${part * SLICE}) * ${PITCH} + j);
% endfor
                y *= alpha;
                if (has_bias) {
                    const long di = (i0 + i) * sdm + (j0 + j) * sdn;
% for h in range(4):
                    if (j + ${h} < rows_b) y.s${h} += beta * ${load(f"Dz[di + {h} * sdn]", "to")};
% endfor
                }
% if finish:
% for h in range(4):
                if (j + ${h} < rows_b) finish(i0 + i, j0 + j + ${h}, 1, ${f'y.s{h}' if long else f'clt_round_{code}_float(y.s{h})'}, ${', '.join(finish.names)});
% endfor
% else:
                if (fours && j + 3 < rows_b) {
                    *(__global ${f'{acc}4' if wide else 'uint2'} *)(Cz + ci + j0 + j) = ${'y' if wide else f'(uint2)(clt_pair_{code}(y.s0, y.s1), clt_pair_{code}(y.s2, y.s3))'};
                } else {
% for h in range(4):
                    if (j + ${h} < rows_b) ${store(f"y.s{h}", "Cz", f"ci + (j0 + j + {h}) * scn")};
% endfor
                }
% endif
            }
        }
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
