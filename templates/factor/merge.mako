## Shared by the kernels of a merge. V roots, or columns, are taken at a time; the distance of a pole from a root is
## computed from the root's origin and offset. For singular values the equation is in squares of poles and roots, but
## the values themselves are stored, so that small differences stay precise.
<%def name="head()">\
<% F, W = (f"{t}{V}" if V > 1 else t for t in (R, J)) %>\
typedef ${I} I;
typedef ${R} R;
typedef ${F} F;
typedef ${W} J;
% if V > 1:
#define IDS (J)(${', '.join(map(str, range(V)))})
% else:
#define IDS 0
% endif
#define ANY(x) CLT_ANY_${W}(x)
% if squares:
#define FAR(pole, origin) ((pole) - (origin)) * ((pole) + (origin))
% else:
#define FAR(pole, origin) ((pole) - (origin))
% endif
% if gpu:
#define EACH(g, n) for (I g = (I)get_global_id(0); g < (n); g += (I)get_global_size(0))
% else:
#define EACH(g, n) for (I g = (I)get_group_id(0); g < (n); g += (I)get_num_groups(0))
% endif
</%def>\
