## The plane rotation shared by the kernels that list rotations.
<%def name="rotation()">\
## The rotation (c s; -s c), c >= 0, that maps (f, g) to (r, 0); returns r. Small f and g are scaled first: their
## squares would be too imprecise for c^2 + s^2 = 1.
static inline R clt_rotation(R f, R g, R *c, R *s) {
    const R square = f * f + g * g;
    R unit = 1, r;
    if (square * EPSILON < TINY) {
        unit = fmax(fabs(f), fabs(g));
        if (unit == 0) {
            *c = 1, *s = 0;
            return f + g;
        }
        f /= unit, g /= unit;
        r = copysign(sqrt(f * f + g * g), f);
    } else
        r = copysign(sqrt(square), f);
    *c = f / r, *s = g / r;
    return r * unit;
}
</%def>\
