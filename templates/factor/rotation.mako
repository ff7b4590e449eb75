## Plane rotations, as the steps that list them and the walk that applies them have them.
<%def name="rotation()">\
/* The rotation (c s; -s c) that makes (f, g) to (r, 0), c not negative. The squares of small numbers would be too imprecise for c^2 + s^2 = 1. */
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
