<%doc>
Connectionist temporal classification (Graves et al., 2006) in logarithms, on a CPU: see ctc/gpu.mako for what is
computed. Vectors run over the states of a sample. A work-group takes a sample, time by time: the last two times are
kept in scratch memory, padded by impossible states, together with the label of each state and whether it can be reached
from the second state before it (`leaps`). The gradient's work-items take runs of (sample, time) and add up each state's
share as a probability, at most 1: the blanks' shares by lanes, those of labels one by one.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%
T, V = dt.reg, memory.lanes
F = f"{T}{V}"
J = "long" if T == "double" else "int"
JV = f"{J}{V}"
log = f"log_{F}" if T == "float" else "log"
step_back = kind == 'alpha'
%>\
#pragma OPENCL FP_CONTRACT OFF
${headers}
${lane_memory.helpers({dt.code: memory}, V, ((dt.code, 'load'), (dt.code, 'store')))}\
typedef ${I} I;
typedef int${V} int${V}_u __attribute__((aligned(4)));
#define AT(p) (*(__global u_${dt.code} *)(p))
#define IDS ((${JV})(${', '.join(map(str, range(V)))}))
#define INSIDE(s) (IDS < (${JV})(states - (s)))
static inline ${F} clt_add3(const ${F} a, const ${F} b, const ${F} c) {
    const ${F} two = a > b ? a : b, most = two > c ? two : c, base = most == -INFINITY ? (${F})(0) : most;
    return ${log}(clt_exp_neg_${F}(a - base) + clt_exp_neg_${F}(b - base) + clt_exp_neg_${F}(c - base)) + base;
}
## Labels are out of range only in samples for which an error is about to be raised; the clamp keeps loads in bounds.
#define LABEL(s) ((s) & 1 ? (I)clamp((long)labels[(s) / 2 * step], 0L, (long)classes - 1) : blank)
<%def name="of_labels(at)" filter="trim">
(${F})(${', '.join(f'p[{at}[{k}]]' for k in range(V))})
</%def>\
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void ${fn}(__global const ${T} *restrict lp, __global const ${target} *restrict targets, __global const long *restrict plan,
                    __global ${T} *alpha, __global ${T} *loss, __global int *places\
% if kind == 'grad':
, __global const ${T} *restrict beta, __global const ${T} *restrict slope, __global ${T} *out\
% else:
, __global ${T} *scratch\
% if kind == 'alpha':
, __global long *status, const I slot\
% endif
% endif
, const I batch, const I times, const I classes, const I width, const I blank, const I ot, const I step, const I forgive, const I room) {
% if kind == 'grad':
    const I total = batch * times, parts = (I)get_global_size(0), part = (I)get_global_id(0);
    const I begin = total / parts * part + min(part, (I)(total % parts)), end = begin + total / parts + (part < total % parts);
    for (I q = begin; q < end; ++q) {
        const I b = q / times, t = q % times, states = 2 * (I)plan[batch + b] + 1;
        __global ${T} *row = out + (t * batch + b) * classes;
        __global const int *place = places + b * 2 * room;
        for (I c = 0; c < classes; c += ${V}) store_${dt.code}(row + c, (${F})(0), min(classes - c, (I)${V}));
        const ${T} nll = loss[b];
        if (t >= (I)plan[b] || (forgive && nll == INFINITY)) continue;
        __global const ${T} *p = lp + (t * batch + b) * classes, *a = alpha + (b * times + t) * width, *z = beta + (b * times + t) * width;
        ${F} blanks = 0;
        for (I s = 0; s < states; s += ${V}) {
            const int m = (int)min(states - s, (I)${V});
            const ${F} log_share = load_${dt.code}(a + s, m) + load_${dt.code}(z + s, m) + nll - ${of_labels('(place + s)')};
            const ${F} share = INSIDE(s) ? clt_exp_neg_${F}(log_share > 0 ? (${F})(0) : log_share) : (${F})(0);
            blanks += IDS & (${JV})(1) ? (${F})(0) : share;
% for k in range(1, V, 2):
            row[place[s + ${k}]] += share.s${f'{k:x}'};
% endfor
        }
        row[blank] += ${' + '.join(f'blanks.s{k:x}' for k in range(0, V, 2))};
        const ${F} by = slope[b];
        for (I c = 0; c < classes; c += ${V}) {
            const int m = (int)min(classes - c, (I)${V});
            const ${F} own = load_${dt.code}(row + c, m), found = (exp_${F}(load_${dt.code}(p + c, m)) - own) * by;
            store_${dt.code}(row + c, nll == INFINITY ? (${F})(NAN) : found, m);
        }
    }
% else:
    for (I b = (I)get_group_id(0); b < batch; b += (I)get_num_groups(0)) {
        const I last = (I)plan[b], n = (I)plan[batch + b], states = 2 * n + 1;
        __global const ${target} *labels = targets + ot + (I)plan[2 * batch + b];
        __global ${T} *own = alpha + b * times * width;
% if kind == 'alpha':
        int bad = 0;
        for (I i = 0; i < n && !bad; ++i) {
            const long label = (long)labels[i * step];
            bad = label < 0 || label >= (long)classes;
            if (bad && !status[slot]) { status[slot] = 1; status[slot + 1] = label; status[slot + 2] = b; }
        }
        if (bad) {
            loss[b] = NAN;
            continue;
        }
% endif
        __global int *place = places + b * 2 * room, *leaps = place + room;
        __global ${T} *now = scratch + b * 2 * (room + ${V}) + ${V}, *near = now + room + ${V};
        for (I s = 0; s < room; ++s) {
            place[s] = s < states ? LABEL(s) : blank;
            leaps[s] = s > 1 && s < states && (s & 1) && LABEL(s - 2) != place[s] ? -1 : 0;
        }
        for (I s = -${V}; s < room; s += ${V}) AT(now + s) = AT(near + s) = (${F})(-INFINITY);
        for (I i = 0; i < last; ++i) {
            const I t = ${'i' if step_back else 'last - 1 - i'};
            __global const ${T} *p = lp + (t * batch + b) * classes;
            for (I s = 0; s < states; s += ${V}) {
                ${F} value;
% if step_back:
                if (i == 0) value = IDS + (${JV})(s) < (${JV})(2) ? (${F})(0) : (${F})(-INFINITY);
                else {
                    const int${V} leap = *(__global const int${V}_u *)(leaps + s);
                    value = clt_add3(AT(near + s), AT(near + s - 1), convert_${JV}(leap) != (${JV})(0) ? AT(near + s - 2) : (${F})(-INFINITY));
                }
% else:
                if (i == 0) value = IDS + (${JV})(s) >= (${JV})(states - 2) ? (${F})(0) : (${F})(-INFINITY);
                else {
                    const int${V} leap = *(__global const int${V}_u *)(leaps + s + 2);
                    value = clt_add3(AT(near + s), AT(near + s + 1), convert_${JV}(leap) != (${JV})(0) ? AT(near + s + 2) : (${F})(-INFINITY));
                }
% endif
                value = INSIDE(s) ? value + ${of_labels('(place + s)')} : (${F})(-INFINITY);
                AT(now + s) = value;
                store_${dt.code}(own + t * width + s, value, (int)min(states - s, (I)${V}));
            }
            __global ${T} *turn = now;
            now = near;
            near = turn;
        }
% if kind == 'alpha':
        ${T} sum = n == 0 && last == 0 ? (${T})0 : -INFINITY;
        if (last > 0) {
            __global const ${T} *ends = own + (last - 1) * width;
            const ${T} a = ends[states - 1], z = n ? ends[states - 2] : -INFINITY, most = a > z ? a : z;
            sum = most == -INFINITY ? most : most + log1p(exp((a > z ? z : a) - most));
        }
        loss[b] = -sum;
% endif
    }
% endif
}
