## Plane rotations, as the steps that list them and the walk that applies them have them.
<%def name="rotation()">\
/* The rotation (c s; -s c) that makes (f, g) to (r, 0), c not negative. */
static inline R clt_rotation(const R f, const R g, R *c, R *s) {
    const R r = copysign(sqrt(f * f + g * g), f);
    if (r == 0) {
        *c = 1, *s = 0;
        return f + g;
    }
    *c = f / r, *s = g / r;
    return r;
}
</%def>\
