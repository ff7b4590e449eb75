<%doc>
The weights for which the computed roots are exact: vectors computed from these are orthogonal whatever the roots'
errors are (Gu and Eisenstat, SIAM J. Matrix Anal. Appl. 15, 1994). The square of a weight is the product of its pole's
distances from all roots, divided by that of its distances from all other poles.
</%doc>\
<%namespace name="merge" file="/factor/merge.mako"/>\
${merge.head()}\
__kernel void ${fn}(__global const R *all_poles, __global const R *all_weights, __global const int *states, __global const R *origins, __global const R *offsets,
                    __global R *exact, const I count, const I step, const I blocks) {
    EACH(g, count * blocks) {
        const I z = g / blocks, first = g % blocks * ${V}, k = states[2 * z];
        if (first >= k) continue;
        __global const R *poles = all_poles + z * step;
        const F pole = *(__global const F *)(poles + first), weight = *(__global const F *)(all_weights + z * step + first);
        F square = 1;
        for (I j = 0; j < k; ++j)
            square *= (FAR((F)(origins[z * step + j]), pole) + offsets[z * step + j]) / (IDS == (J)(j - first) ? (F)(1) : FAR((F)(poles[j]), pole));
        const F size = sqrt(fabs(square));
        *(__global F *)(exact + z * step + first) = weight < 0 ? -size : size;
    }
}
