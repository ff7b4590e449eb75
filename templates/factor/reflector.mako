## A Householder reflector H = I - tau v v^H (LAPACK's larfg), found by a work-item, on a GPU by a work-group with `sizes` and `sums` in local memory.
<%namespace name="numbers" file="/factor/numbers.mako"/>\
## What all lanes have found becomes one number, in each of them.
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
## H^H makes the numbers from x[j] on, before row m, to one real number and zeros. v begins with 1; its others replace those below x[j].
## Declares `factor`, tau, and `end`, that number, which nobody has put into its place. All is found of numbers divided by
## the largest, so that squares neither overflow nor vanish and H is unitary however small they are.
<%def name="find(x, j)">\
            const T alpha = ${x}[${j}];
            RV largest = 0;
<%numbers:rows first="${j} + 1">\
                largest = fmax(largest, LARGEST(LOAD(${x} + i, n)));
</%numbers:rows>\
            R most = clt_lane_max(largest);
${joined('most', 'size', '0', lambda a, b: f"fmax({a}, {b})")}\
            // Where there are but zeros below the first, nothing is reflected.
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
