## A Householder reflector H = I - tau v v^H (LAPACK's larfg), found by a work-item, on a GPU by a work-group with `sizes` and `sums` in local memory.
<%namespace name="numbers" file="/factor/numbers.mako"/>\
## Reduce a number over the lanes of a group, with the result in each lane.
<%def name="joined(name, kind, start, step)">\
% if gpu:
                ${kind}s[LANE] = ${name};
                SYNC;
                ${name} = ${start};
                for (int s = 0; s < LANES; ++s) ${name} = ${step(name, kind + 's[s]')};
                SYNC;
% endif
</%def>\
<%def name="add(name)">${joined(name, 'sum', '0', lambda a, b: f"{a} + {b}")}</%def>\
## Find H such that H^H maps x[j .. m) to one real number followed by zeros. v's first number is 1; its others overwrite
## those below x[j]. Declares `factor`, which is tau, and `end`, that real number, which the caller has to store in
## x[j]. Everything is computed from numbers divided by the largest, so that squares neither overflow nor underflow and
## H is unitary however small the numbers are.
<%def name="find(x, j)">\
            const T alpha = ${x}[${j}];
            RV largest = 0;
<%numbers:rows first="${j} + 1">\
                largest = fmax(largest, LARGEST(LOAD(${x} + i, n)));
</%numbers:rows>\
            R most = clt_lane_max(largest);
${joined('most', 'size', '0', lambda a, b: f"fmax({a}, {b})")}\
            ## Where all numbers below x[j] are zero (and x[j] is real), H is the identity.
            const int plain = !(most > 0 || isnan(most))${' && alpha.y == 0' if dt.is_complex else ''};
            most = fmax(most, LARGEST(alpha));
            if (most == 0) most = 1;
            F squares = 0;
<%numbers:rows first="${j} + 1">\
                const F y = clt_clip(LOAD(${x} + i, n), n) / most;
                squares = clt_plus_conj(squares, y, y);
</%numbers:rows>\
            T sum = SUM(squares);
${add('sum')}\
            const T top = alpha / most;
            const R beta = -copysign(sqrt(REAL(sum) + ${'top.x * top.x + top.y * top.y' if dt.is_complex else 'top * top'}), REAL(top));
            T factor = ${'(T)((beta - top.x) / beta, -top.y / beta)' if dt.is_complex else '(beta - top) / beta'}, end = OF_REAL(beta * most);
            const F divisor = SPREAD(${'plain ? ONE : DIV(ONE, top - OF_REAL(beta))' if dt.is_complex else 'plain ? 1 : top - beta'});
            if (plain) factor = 0, end = alpha, most = 1;
<%numbers:rows first="${j} + 1">\
                const F y = LOAD(${x} + i, n) / most;
                STORE(${x} + i, ${'clt_times(y, divisor)' if dt.is_complex else 'y / divisor'}, n);
</%numbers:rows>\
            SYNC;
</%def>\
