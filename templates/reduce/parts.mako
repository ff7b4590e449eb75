<%! from cltensor.codegen.memory import Memory %>\
## What the reducing templates share: statements line by line, and how results leave a kernel.
<%def name="lines(items, indent)">\
% for item in items:
${' ' * indent}${item}
% endfor
</%def>\
## Store the state `p` as one output (width == 1) or m of them; `origin`: the position where the part begins.
<%def name="store(p, width, o, m, origin)">\
% if partial:
% for k, (text, kind) in enumerate(state.partial(p, width, origin)):
% if width == 1:
    q${k}[part * nout + ${o}] = ${text};
% else:
    { ${kind} t[${width}]; vstore${width}(${text}, 0, t); for (int k = 0; k < ${m}; k++) q${k}[part * nout + ${o} + k] = t[k]; }
% endif
% endfor
% else:
<% values = state.results(p, width, origin) %>\
% for k, (name, dt) in enumerate(outputs):
<% text = convert(*values[name], dt, width) %>\
% if width == 1:
    ${Memory(dt, 1).scalar_store(f'q{k} + {o}', text)};
% else:
    store_${dt.code}(q${k} + ${o}, ${text}, ${m});
% endif
% endfor
% endif
</%def>\
