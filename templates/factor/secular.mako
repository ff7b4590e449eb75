<%doc>
The k roots of the secular equation 1 / rho + sum of weights_i^2 / (poles_i - x) = 0, one above each pole. A root is
stored as its origin, the nearer of its neighbouring poles, and an offset from there, so that its distance from every
pole is precise. Each step approximates the terms of the poles below and those above by one pole each, the root's
neighbours (Li, LAPACK Working Note 89, 1994); where that leads out of the bracket, it is bisected. Above the last pole
a pole of weight 0 is assumed, at an upper bound of the last root.
</%doc>\
<%namespace name="merge" file="/factor/merge.mako"/>\
${headers}\
${merge.head()}\
## For the V roots from `first` on: the sum over the poles up to and including a root's own, the sum over those above,
## and the derivatives of both.
static inline void clt_sums(__global const R *poles, __global const R *weights, const I k, const I first, const F origin, const F offset, F *below, F *slope_below,
                            F *above, F *slope_above) {
    F s = 0, ds = 0, t = 0, dt = 0;
    I i = 0;
    for (; i < first; ++i) {
        const F q = (F)(weights[i]) / (FAR((F)(poles[i]), origin) - offset);
        s += q * weights[i], ds += q * q;
    }
    for (; i < min(first + ${V}, k); ++i) {
        const F q = (F)(weights[i]) / (FAR((F)(poles[i]), origin) - offset), own = IDS >= (J)(i - first) ? q : (F)(0), other = q - own;
        s += own * weights[i], ds += own * own;
        t += other * weights[i], dt += other * other;
    }
    for (; i < k; ++i) {
        const F q = (F)(weights[i]) / (FAR((F)(poles[i]), origin) - offset);
        t += q * weights[i], dt += q * q;
    }
    *below = s, *slope_below = ds, *above = t, *slope_above = dt;
}
__kernel void ${fn}(__global const R *all_poles, __global const R *all_weights, __global const int *states, __global const R *sizes, __global R *origins,
                    __global R *offsets, const I count, const I step, const I blocks) {
    EACH(g, count * blocks) {
        const I z = g / blocks, first = g % blocks * ${V}, k = states[2 * z];
        if (first >= k) continue;
        __global const R *poles = all_poles + z * step, *weights = all_weights + z * step;
        const R inverse = sizes[3 * z], reach = sizes[3 * z + 1];
        F own, next;
        for (I lane = 0; lane < ${V}; ++lane) {
            const I j = min(first + lane, k - 1);
            ((R *)&own)[lane] = poles[j], ((R *)&next)[lane] = poles[min(j + 1, k - 1)];
        }
        const J last = IDS >= (J)(k - 1 - first);
        const F gap = last ? (F)(reach) : FAR(next, own), center = gap * (R)0.5f;
        F below, slope_below, above, slope_above;
        clt_sums(poles, weights, k, first, own, center, &below, &slope_below, &above, &slope_above);
        const J left = inverse + below + above >= 0, near = left | last;
        const F origin = near ? own : next, to_own = near ? (F)(0) : -gap, to_next = near ? gap : (F)(0);
        F x = near ? center : -center, lo = left ? (F)(0) : x, hi = left ? x : (near ? gap : (F)(0));
        for (int turn = 0; turn < 80; ++turn) {
            clt_sums(poles, weights, k, first, origin, x, &below, &slope_below, &above, &slope_above);
            const F f = inverse + below + above, slope = slope_below + slope_above;
            lo = f < 0 ? x : lo, hi = f < 0 ? hi : x;
            J more = fabs(f) > ${epsilon} * (8 * (above - below) + inverse + fabs(x) * slope);
            ## Approximate f(x + step) by c + s / (d1 - step) + t / (d2 - step), which has f's value at x and the slopes
            ## of f's parts below and above.
            const F d1 = to_own - x, d2 = to_next - x, c = f - d1 * slope_below - d2 * slope_above;
            const F a = (d1 + d2) * f - d1 * d2 * slope, b = d1 * d2 * f, root = sqrt(fmax(a * a - 4 * b * c, (F)(0)));
            F to = x + (a <= 0 ? (a - root) / (2 * c) : 2 * b / (a + root));
            to = (to > lo) & (to < hi) ? to : (lo + hi) * (R)0.5f;
            more &= to != x;
            if (!ANY(more)) break;
            x = more ? to : x;
        }
        *(__global F *)(origins + z * step + first) = origin;
        *(__global F *)(offsets + z * step + first) = x;
    }
}
