<%doc>
Connectionist temporal classification (Graves et al., 2006) in logarithms. A sample's states are its labels with blanks
between and around: state s is blank for even s, else label s / 2.
alpha: the log-probability of reaching state s at time t, and the loss. beta: that of continuing from there to the end.
A work-group takes a sample, time by time; a lane takes every ${lanes}th state. For CPUs see ctc/cpu.mako.
grad: exp(lp) minus the share of the paths through each class, a work-item per (sample, time).
</%doc>\
<% T = dt.reg %>\
% if dt.code == 'f64':
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
typedef ${I} I;
typedef ${T} T;
static inline T clt_add(const T a, const T b) {
    const T most = a > b ? a : b, least = a > b ? b : a;
    return most == -INFINITY ? most : most + log1p(exp(least - most));
}
static inline T clt_add3(const T a, const T b, const T c) {
    const T two = a > b ? a : b, most = two > c ? two : c;
    return most == -INFINITY ? most : most + log(exp(a - most) + exp(b - most) + exp(c - most));
}
## Labels are out of range only in samples for which an error is about to be raised; the clamp keeps loads in bounds.
#define LABEL(s) ((s) & 1 ? (I)clamp((long)labels[(s) / 2 * step], 0L, (long)classes - 1) : blank)
% if kind != 'grad':
__attribute__((reqd_work_group_size(${lanes}, 1, 1)))
% endif
__kernel void ${fn}(__global const T *restrict lp, __global const ${target} *restrict targets, __global const long *restrict plan,
                    __global T *alpha, __global T *loss\
% if kind == 'grad':
, __global const T *restrict beta, __global const T *restrict slope, __global T *restrict out\
% elif kind == 'alpha':
, __global long *status, const I slot\
% endif
, const I batch, const I times, const I classes, const I width, const I blank, const I ot, const I step, const I forgive) {
% if kind == 'grad':
    for (I q = (I)get_global_id(0); q < batch * times; q += (I)get_global_size(0)) {
        const I b = q / times, t = q % times;
        __global T *row = out + (t * batch + b) * classes;
        const T nll = loss[b];
        if (t >= (I)plan[b] || (forgive && nll == INFINITY)) {
            for (I c = 0; c < classes; ++c) row[c] = 0;
            continue;
        }
        const I states = 2 * (I)plan[batch + b] + 1;
        __global const ${target} *labels = targets + ot + (I)plan[2 * batch + b];
        for (I c = 0; c < classes; ++c) row[c] = -INFINITY;
        for (I s = 0; s < states; ++s) {
            const I c = LABEL(s), at = (b * times + t) * width + s;
            row[c] = clt_add(row[c], alpha[at] + beta[at]);
        }
        const T by = slope[b];
        for (I c = 0; c < classes; ++c) {
            const T p = lp[(t * batch + b) * classes + c];
            row[c] = (exp(p) - exp(row[c] + nll - p)) * by;
        }
    }
% else:
    const I lane = (I)get_local_id(0);
    for (I b = (I)get_group_id(0); b < batch; b += (I)get_num_groups(0)) {
        const I last = (I)plan[b], n = (I)plan[batch + b], states = 2 * n + 1;
        __global const ${target} *labels = targets + ot + (I)plan[2 * batch + b] ;
        __global T *own = alpha + b * times * width;
% if kind == 'alpha':
        int bad = 0;
        for (I i = 0; i < n; ++i) {
            const long label = (long)labels[i * step];
            if (label < 0 || label >= (long)classes) {
                bad = 1;
                if (lane == 0) {
                    if (atomic_cmpxchg((volatile __global int *)(status + slot), 0, 1) == 0) {
                        status[slot + 1] = label; status[slot + 2] = b;
                    }
                }
                break;
            }
        }
        if (bad) {
            if (lane == 0) loss[b] = NAN;
            continue;
        }
% endif
        for (I i = 0; i < last; ++i) {
            const I t = ${'i' if kind == 'alpha' else 'last - 1 - i'};
            __global T *now = own + t * width, *near = own + (${'t - 1' if kind == 'alpha' else 't + 1'}) * width;
            __global const T *p = lp + (t * batch + b) * classes;
            for (I s = lane; s < states; s += ${lanes}) {
                const I label = LABEL(s);
                T value;
% if kind == 'alpha':
                if (i == 0) value = s < 2 ? (T)0 : -INFINITY;
                else {
                    const int jumps = s > 1 && (s & 1) && LABEL(s - 2) != label;
                    value = clt_add3(near[s], s > 0 ? near[s - 1] : -INFINITY, jumps ? near[s - 2] : -INFINITY);
                }
% else:
                if (i == 0) value = s >= states - 2 ? (T)0 : -INFINITY;
                else {
                    const int jumps = s + 2 < states && (s & 1) && LABEL(s + 2) != label;
                    value = clt_add3(near[s], s + 1 < states ? near[s + 1] : -INFINITY, jumps ? near[s + 2] : -INFINITY);
                }
% endif
                now[s] = value + p[label];
            }
            barrier(CLK_GLOBAL_MEM_FENCE);
        }
% if kind == 'alpha':
        if (lane == 0) {
            T sum = n == 0 && last == 0 ? (T)0 : -INFINITY;
            if (last > 0) {
                __global const T *ends = own + (last - 1) * width;
                sum = n == 0 ? ends[0] : clt_add(ends[states - 1], ends[states - 2]);
            }
            loss[b] = -sum;
        }
% endif
    }
% endif
}
