<%doc>
Attention and its gradients for devices where a work-item is a lane. A work-group of DOWN x ACROSS lanes owns ROWS rows
(queries; keys for `by_keys`) and walks over tiles of COLS rows of the other side in local memory. A lane makes R x C of
a tile's scores, and holds its share of R rows of the results in registers, FOURS groups of four columns: each 16 bytes
read from local memory are used for 4 R or 4 C multiply-adds. Rows in local memory are padded by four numbers, and a
lane's rows and columns are DOWN and ACROSS apart, so that neighbouring lanes read different banks; 8 x 4 consecutive
lanes form a rectangle of the tile, which needs the fewest reads. The order of summation is fixed. Loops are unrolled
partially: fully unrolled, LLVM would load all of a tile at once, and run out of registers. W is the padded width of a
head.
kind: forward, by_query (gradient of q), by_keys (gradients of k and v). shared: keys and values take turns in one tile
of local memory. In `forward` the keys may be divided among `parts` work-groups, whose results attention/join.mako
combines.
</%doc>\
<%namespace name="tiles" file="tiles.mako"/>\
<%
GROUP, ROWS, COLS = DOWN * ACROSS, DOWN * R, ACROSS * C
keys = kind == "by_keys"
forward = kind == "forward"
pitch, beside, stat = W + 4, COLS + 4, ACROSS + 4
FOURS = W // ACROSS // 4
def last_row(first, end):
    inside = f"min({first} + r, {end} - 1)"
    return f"max({inside}, 0)" if ragged else inside
quads = W // 4
side = "other" if shared else "other_v"
%>\
% for h in headers:
${h}
% endfor
typedef ${acc} T;
typedef ${acc}4 T4;
#define NUMBER(table, r, c, pitch) ((__local T *)(table))[(r) * (pitch) + (c)]
## Copy rows of an operand to local memory, 16 bytes at a time where the operand and its rows are aligned to 16 bytes.
## Beyond an edge a lane reads another element and then replaces it by zero: an unconditional load can be issued before
## others have arrived.
<%def name="fetch(dst, height, name, first, end, cols, by='1')">\
% if ta == acc == 'float':
            if (${name}_c == 1 && ${cols} % 4 == 0 && (((ulong)${name}z | (ulong)${name}_r * 4) & 15) == 0) {
                const int c = lid % ${quads}, inside = 4 * c < ${cols};
                __global const float4 *from = (__global const float4 *)${name}z + (inside ? c : 0);
#pragma unroll 8
                for (int r = lid / ${quads}; r < ${height}; r += ${max(GROUP // quads, 1)}) {
                    const T4 x = from[${last_row(first, end)} * (${name}_r / 4)] * ${by};
                    ${dst}[r][c] = inside && ${first} + r < ${end} ? x : (T4)(0);
                }
            } else
% endif
#pragma unroll 1
            for (int c = lid % ${W}; c < ${W}; c += ${GROUP}) {
                __global const ${ta} *from = ${name}z + min(c, ${cols} - 1) * ${name}_c;
#pragma unroll 4
                for (int r = lid / ${W}; r < ${height}; r += ${max(GROUP // W, 1)}) {
                    __global const ${ta} *x = from + ${last_row(first, end)} * ${name}_r;
                    NUMBER(${dst}, r, c, ${pitch}) = ${first} + r < ${end} && c < ${cols} ? ${load("x[0]")} * ${by} : (T)0;
                }
            }
</%def>\
## Declare ${name}0_0, ${name}0_1, ...: the dot products of a lane's rows of `a` with its rows of `b`.
<%def name="dots(name, a, b)">\
            T ${', '.join(f'{name}{i}_{j} = 0' for i in range(R) for j in range(C))};
#pragma unroll 2
            for (int d = 0; d < ${quads}; d++) {
% for j in range(C):
                const T4 o${j} = ${b}[lane + ${ACROSS * j}][d];
% endfor
% for i in range(R):
                {
                    const T4 m = ${a}[line + ${DOWN * i}][d];
% for k in range(4):
% for j in range(C):
                    ${name}${i}_${j} += m.s${k} * o${j}.s${k};
% endfor
% endfor
                }
% endfor
            }
</%def>\
## The score of a lane's row i and column j, from the dot product that `dots` computed: -inf where masked.
<%def name="score(i, j)">\
                const int r = line + ${DOWN * i}, c = lane + ${ACROSS * j};
                const int qi = ${'k0 + c' if keys else 'own + r'}, ki = ${'own + r' if keys else 'k0 + c'};
                const int seen = qi < L && ki < S && !(${tiles.hidden('qi', 'ki')});
                T s = seen ? value${i}_${j} : (T)(-INFINITY);
% if mask == 'bool':
                if (seen && !mask_z[qi * mask_r + ki * mask_c]) s = -INFINITY;
% elif mask:
                if (seen) s += ${mask_load('mask_z[qi * mask_r + ki * mask_c]')};
% endif
</%def>\
<%def name="gather(to, table, side)">\
#pragma unroll 1
            for (int c = 0; c < ${COLS // 4}; c++) {
% for i in range(R):
                const T4 p${i} = ${table}[(line + ${DOWN * i}) * ${beside // 4} + c];
% endfor
% for k in range(4):
% for f in range(FOURS):
                {
                    const T4 o = ${side}[4 * c + ${k}][lane + ${ACROSS * f}];
% for i in range(R):
                    ${to}${i}_${f} += p${i}.s${k} * o;
% endfor
                }
% endfor
% endfor
            }
</%def>\
<%def name="zeros(name)">\
        T4 ${', '.join(f'{name}{i}_{f} = (T4)(0)' for i in range(R) for f in range(FOURS))};
</%def>\
## Store a lane's share of the results; store(value, pointer, index) returns the text that stores one number.
<%def name="put(name, found, cols, rows, by, store)">\
% for i in range(R):
        if (own + line + ${DOWN * i} < ${rows}) {
            ${name.format(f'(own + line + {DOWN * i})')};
% for f in range(FOURS):
% for k in range(4):
            if (4 * lane + ${4 * ACROSS * f + k} < ${cols}) { ${store(f"({found}{i}_{f}.s{k} * {by.format(i)})", "o", f"4 * lane + {4 * ACROSS * f + k}")}; }
% endfor
% endfor
        }
% endfor
</%def>\
<%
def place(name, kind="T"):
    return f"__global {kind} *o = {name} + {capture(tiles.element, name)} + {{}} * {name}_r"

def plain(value, pointer, index):
    return f"{pointer}[{index}] = {value}"
%>\
__kernel __attribute__((reqd_work_group_size(${GROUP}, 1, 1)))
void ${fn}(${', '.join(parameters)},
% if forward:
    __global ${to} *out, __global T *sums, __global T *partial, const long out_0, const long out_1, const long out_2, const long out_r,
% elif keys:
    __global T *dk, __global T *dv,
    const long dk_0, const long dk_1, const long dk_2, const long dk_r, const long dv_0, const long dv_1, const long dv_2, const long dv_r,
% else:
    __global T *dq, const long dq_0, const long dq_1, const long dq_2, const long dq_r,
% endif
    const int n1, const int n2, const int batches, const int tasks, const int parts, const int part_keys,
    const int L, const int S, const int E, const int EV, const int causal, const T scale)
{
    __local T4 mine[${ROWS}][${pitch // 4}];
% if forward and not shared:
    ## Probabilities overwrite the keys, which are no longer needed once scores are computed.
    __local T4 other[${max(COLS, -(-ROWS * beside // pitch))}][${pitch // 4}];
    __local T4 *const table = other[0];
% else:
    __local T4 other[${COLS}][${pitch // 4}], table[${ROWS * beside // 4}];
% endif
% if not shared:
    __local T4 other_v[${COLS}][${pitch // 4}];
% endif
% if forward:
    __local T4 stats[${ROWS}][${stat // 4}];
    __local T base[${ROWS}], less[${ROWS}];
% else:
    __local T4 mine_v[${ROWS}][${pitch // 4}];
% endif
% if keys:
    __local T4 slopes[${ROWS * beside // 4}];
    __local T lse_c[${COLS}], delta_c[${COLS}];
% endif
    const int lid = get_local_id(0);
% if ACROSS == 16:
    const int line = lid / 8 % 4 + lid / 64 * 4, lane = lid % 8 + lid / 32 % 2 * 8;
% else:
    const int line = lid / ${ACROSS}, lane = lid % ${ACROSS};
% endif
    const int blocks = (${('most_keys' if keys else 'most_queries') if ragged else 'S' if keys else 'L'} + ${ROWS - 1}) / ${ROWS};
    for (int task = get_group_id(0); task < tasks; task += get_num_groups(0)) {
        ## Causal: the longest blocks of rows, of all heads, begin first. Otherwise a head's groups are adjacent and
        ## share keys and values in the cache.
        const int which = causal ? task / parts / batches : task / parts % blocks;
        const long z = causal ? task / parts % batches : task / parts / blocks, z2 = z % n2, z1 = z / n2 % n1, z0 = z / n2 / n1;
        const int own = (${'which' if keys else 'causal ? blocks - 1 - which : which'}) * ${ROWS};
${tiles.sequence()}\
        __global const ${ta} *qz = ${tiles.batch('q')}, *kz = ${tiles.batch('k')}, *vz = ${tiles.batch('v')};
% if not forward:
        __global const ${ta} *gz = ${tiles.batch('g')};
        __global const T *lse_z = ${tiles.batch('lse')}, *delta_z = ${tiles.batch('delta')};
% endif
% if mask:
        __global const ${mask_type} *mask_z = ${tiles.batch('mask')};
% endif
% if keys:
${fetch('mine', ROWS, 'k', 'own', 'S', 'E')}\
${fetch('mine_v', ROWS, 'v', 'own', 'S', 'EV')}\
${zeros('by_k')}${zeros('by_v')}\
        for (int k0 = ${tiles.first_query('own', COLS)}, last = ${tiles.last_query('own', ROWS)}; k0 < last; k0 += ${COLS}) {
${fetch('other', COLS, 'q', 'k0', 'L', 'E', 'scale')}\
${fetch('other_v', COLS, 'g', 'k0', 'L', 'EV')}\
            for (int c = lid; c < ${COLS}; c += ${GROUP}) {
                lse_c[c] = k0 + c < L ? lse_z[(k0 + c) * lse_r] : (T)INFINITY;
                delta_c[c] = k0 + c < L ? delta_z[(k0 + c) * delta_r] : 0;
            }
% else:
${fetch('mine', ROWS, 'q', 'own', 'L', 'E', 'scale')}\
${zeros('found')}\
% if forward:
        T top = -INFINITY, ${', '.join(f'total{i} = 0' for i in range(R))};
% else:
${fetch('mine_v', ROWS, 'g', 'own', 'L', 'EV')}\
% for i in range(R):
        const T lse${i} = own + line + ${DOWN * i} < L ? lse_z[(own + line + ${DOWN * i}) * lse_r] : (T)INFINITY;
        const T delta${i} = own + line + ${DOWN * i} < L ? delta_z[(own + line + ${DOWN * i}) * delta_r] : 0;
% endfor
% endif
        const int part = task % parts, last = ${tiles.last_key('own', ROWS) if ragged else 'min(S, (part + 1) * part_keys)'};
        for (int k0 = ${tiles.first_key('own', COLS) if ragged else 'part * part_keys'}; k0 < last${'' if ragged else f' && !(causal && k0 >= own + {ROWS})'}; k0 += ${COLS}) {
${fetch('other', COLS, 'k', 'k0', 'S', 'E')}\
% if not shared:
${fetch('other_v', COLS, 'v', 'k0', 'S', 'EV')}\
% endif
% endif
            barrier(CLK_LOCAL_MEM_FENCE);
${dots('value', 'mine', 'other')}\
% if forward:
% for i in range(R):
            T most${i} = -INFINITY;
% for j in range(C):
            {
${score(i, j)}\
                value${i}_${j} = s;
                most${i} = s > most${i} ? s : most${i};
            }
% endfor
            NUMBER(stats, line + ${DOWN * i}, lane, ${stat}) = most${i};
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
% if shared:
${fetch('other', COLS, 'v', 'k0', 'S', 'EV')}\
% endif
            if (lid < ${ROWS}) {
                T most = top;
                for (int c = 0; c < ${ACROSS // 4}; c++) {
                    const T4 s = stats[lid][c];
% for k in range(4):
                    most = s.s${k} > most ? s.s${k} : most;
% endfor
                }
                const T above = most == -INFINITY ? 0 : most;
                base[lid] = above;
                less[lid] = exp(top - above);
                top = most;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(R):
            {
                const T above = base[line + ${DOWN * i}], fewer = less[line + ${DOWN * i}];
                total${i} *= fewer;
% for f in range(FOURS):
                found${i}_${f} *= fewer;
% endfor
% for j in range(C):
                value${i}_${j} = exp(value${i}_${j} - above);
                total${i} += value${i}_${j};
                NUMBER(table, line + ${DOWN * i}, lane + ${ACROSS * j}, ${beside}) = value${i}_${j};
% endfor
            }
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
${gather('found', 'table', side)}\
% else:
${dots('slope', 'mine_v', 'other_v')}\
% for i in range(R):
% for j in range(C):
            {
${score(i, j)}\
                const T p = exp(s - ${'lse_c[c]' if keys else f'lse{i}'});
% if keys:
                NUMBER(table, r, c, ${beside}) = p;
                NUMBER(slopes, r, c, ${beside}) = p * (slope${i}_${j} - delta_c[c]);
% else:
                NUMBER(table, r, c, ${beside}) = p * (slope${i}_${j} - delta${i});
% endif
            }
% endfor
% endfor
            barrier(CLK_LOCAL_MEM_FENCE);
% if keys:
${gather('by_v', 'table', 'other_v')}\
${gather('by_k', 'slopes', 'other')}\
% else:
${gather('found', 'table', 'other')}\
% endif
% endif
            barrier(CLK_LOCAL_MEM_FENCE);
        }
% if forward:
% for i in range(R):
        NUMBER(stats, line + ${DOWN * i}, lane, ${stat}) = total${i};
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < ${ROWS}) {
            T total = 0;
            for (int c = 0; c < ${ACROSS // 4}; c++) {
                const T4 s = stats[lid][c];
                total += (s.s0 + s.s1) + (s.s2 + s.s3);
            }
            less[lid] = total == 0 ? 0 : 1 / total;
            if (own + lid < L) {
                if (parts == 1)
                    sums[${tiles.sums_from()} + own + lid] = total == 0 ? (T)INFINITY : top + log(total);
                else {
                    const long row = (z * L + own + lid) * parts + part, all = (long)batches * L * parts;
                    partial[all * EV + row] = top;
                    partial[all * EV + all + row] = total;
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (parts == 1) {
% for i in range(R):
            const T share${i} = less[line + ${DOWN * i}];
% endfor
${put(place('out', to), 'found', 'EV', 'L', 'share{}', store)}\
        } else {
${put('__global T *o = partial + ((z * L + {}) * parts + part) * EV', 'found', 'EV', 'L', '1', plain)}\
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% elif keys:
        barrier(CLK_LOCAL_MEM_FENCE);
${put(place('dk'), 'by_k', 'E', 'S', '1', plain)}\
${put(place('dv'), 'by_v', 'EV', 'S', '1', plain)}\
% else:
        barrier(CLK_LOCAL_MEM_FENCE);
${put(place('dq'), 'found', 'E', 'L', 'scale', plain)}\
% endif
    }
}
