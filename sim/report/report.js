// The page: controls, tables and texts. Text from results is inserted as text, never as markup.
'use strict';

(() => {
const results = new Results(JSON.parse(document.getElementById('data').textContent));
const at = id => document.getElementById(id);
const view = {x: '', y: '', log: false, zero: true, only: {}, series: null, operation: ''};

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (value !== false) made.setAttribute(key, value === true ? '' : value);
  made.append(...children);
  return made;
}

function options(select, list, chosen) {
  select.replaceChildren(...list.map(([value, text]) => element('option', {value, selected: value === chosen}, text)));
}

function plural(count, word) { return `${count} ${word}${count === 1 ? '' : 's'}`; }

// Quotes a word for a shell's command line.
function quoted(word) { return /^[\w@%+=:,.\/\[\]-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`; }

function table(target, heads, rows) {
  const kind = head => head.endsWith('#') ? {class: 'number', scope: 'col'} : {scope: 'col'};
  const cell = (text, i) => element('td', heads[i].endsWith('#') ? {class: 'number'} : {}, text);
  target.replaceChildren(
    element('thead', {}, element('tr', {}, ...heads.map(head => element('th', kind(head), head.replace(/#$/, ''))))),
    element('tbody', {}, ...rows.map(row => element('tr', {class: row.failed ? 'failed' : false},
      ...row.cells.map(cell)))));
  return target;
}

// --- State of the view, read from the page's address and written to it ---------------------------------------------

// The first numeric axis; if that leaves very many curves, the one with the most values.
function axisOfNumbers(varied) {
  const numeric = varied.filter(axis => axis.numeric), first = numeric[0];
  const curves = varied.filter(axis => axis !== first).reduce((count, axis) => count * axis.values.length, 1);
  if (!first || curves <= 60) return first;
  return numeric.reduce((longest, axis) => axis.values.length > longest.values.length ? axis : longest, first);
}

function firstView() {
  const reference = results.sets.flatMap(set => set.references)[0];
  const varied = results.axes.filter(axis => axis.key !== '' && axis.values.length > 1);
  const wanted = reference && varied.find(axis => Object.hasOwn(reference.at, axis.key));
  view.x = (wanted || axisOfNumbers(varied) || varied[0] || results.axes[results.axes.length - 1]).key;
  const known = name => results.metrics.find(metric => metric.name === name);
  view.y = (reference && known(reference.metric) || results.metrics[0] || {name: ''}).name;
  view.log = results.axis(view.x).log;
  const hash = new URLSearchParams(location.hash.slice(1));
  if (hash.has('x') && results.axis(hash.get('x'))) setX(hash.get('x'));
  if (known(hash.get('y'))) view.y = hash.get('y');
  if (hash.has('log')) view.log = hash.get('log') === '1';
  if (hash.has('zero')) view.zero = hash.get('zero') === '1';
  for (const axis of results.axes) {
    const id = hash.get('only.' + axis.key);
    if (axis.texts.has(id) && axis.key !== view.x) view.only[axis.key] = id;
  }
}

function setX(key) {
  view.series = null;
  view.x = key;
  view.log = results.axis(key).log;
  delete view.only[key];
}

function remember() {
  const hash = new URLSearchParams({x: view.x, y: view.y, log: view.log ? 1 : 0, zero: view.zero ? 1 : 0});
  for (const [key, id] of Object.entries(view.only)) if (id) hash.set('only.' + key, id);
  history.replaceState(null, '', '#' + hash);
}

// --- Controls -----------------------------------------------------------------------------------------------------

function choice(text, list, chosen, change) {
  const select = element('select');
  options(select, list, chosen);
  select.addEventListener('change', () => { change(select.value); show(); });
  return element('label', {}, text, select);
}

function metricChoice() {
  const label = choice('y axis', [], '', value => { view.y = value; });
  const hidden = results.sets.reduce((sum, set) => sum + (set.left_out.counters || 0), 0);
  const more = hidden ? `; ${hidden} more are not in this page` : '';
  const group = (text, list) => list.length ? [element('optgroup', {label: text}, ...list.map(
    metric => element('option', {value: metric.name, selected: metric.name === view.y}, metric.label)))] : [];
  label.lastChild.append(...group('Flows', results.metrics.filter(metric => metric.ofFlow)),
    ...group(`Counters, those that vary most first${more}`, results.metrics.filter(metric => !metric.ofFlow)));
  return label;
}

function tick(text, chosen, change) {
  const box = element('input', {type: 'checkbox', checked: chosen});
  box.addEventListener('change', () => { change(box.checked); show(); });
  return element('label', {class: 'tick'}, box, text);
}

function controls() {
  const form = at('controls'), axis = results.axis(view.x);
  form.replaceChildren(
    choice('x axis', results.axes.map(of => [of.key, of.key || of.label]), view.x, setX), metricChoice(),
    ...results.axes.filter(of => of.key !== view.x && of.values.length > 1).map(of => {
      const all = ['', `all ${of.values.length}, a curve each`];
      return choice(of.key || of.label, [all, ...of.values.map(value => [value.id, value.text])],
        view.only[of.key] || '', id => { view.only[of.key] = id; });
    }));
  if (axis.canBeLog && axis.values.length > 1)
    form.append(tick('x logarithmic', view.log, value => { view.log = value; }));
  form.append(tick('y from 0', view.zero, value => { view.zero = value; }));
}

// --- Plots --------------------------------------------------------------------------------------------------------

function widthOf(target) { return target.clientWidth || document.documentElement.clientWidth; }
function hasInterval(value) { return Boolean(value) && value.low !== value.high; }

function draw(target, {traces, shape}, label) {
  target.setAttribute('aria-label', label);
  showLegends(target, traces);
  return Plotly.react(target, traces, shape, CONFIG);
}

function showCurve() {
  if (!view.y) return void at('plot-curve').replaceChildren('No point has a value.');
  const figure = curveFigure(results, view, widthOf(at('plot-curve')));
  draw(at('plot-curve'), figure, `${figure.metric.label} by ${view.x || 'set'}, ` +
    `${plural(figure.series.length, 'curve')}; the values are in the table of all points`);
  const notes = [];
  if (figure.rows.some(row => results.value(row, view.y)?.n > 1 && !row.point.equal_runs))
    notes.push('Curves are means over the seeds, bands their 95% intervals.');
  else if (figure.rows.some(row => hasInterval(results.value(row, view.y))))
    notes.push('Bands are the 95% intervals that each run gives by batch means.');
  const equal = figure.rows.filter(row => row.point.equal_runs).length;
  if (equal)
    notes.push(`At ${plural(equal, 'point')} all seeds gave the same: nothing is random there, and a band is that of ` +
      'one run, by batch means.');
  const part = figure.rows.filter(row => row.done && row.done < row.point.runs.length).length;
  if (part) notes.push(`${plural(part, 'point')} with open marks: some of the seeds gave nothing.`);
  const none = figure.rows.filter(row => row.done === 0).length;
  if (none) notes.push(`${plural(none, 'point')} without a value: at the lower edge, and in the table.`);
  at('curve-note').textContent = notes.join(' ');
}

function showRatio() {
  const figure = results.sets.length > 1 && view.x !== '' ? ratioFigure(results, view, widthOf(at('plot-curve'))) : null;
  at('ratio').hidden = !figure || figure.traces.length === 0;
  if (at('ratio').hidden) return;
  at('ratio-title').textContent = `Relative to ${results.setNames[0]}: ` +
    results.metrics.find(metric => metric.name === view.y).label;
  draw(at('plot-ratio'), figure, 'ratio of each set of results to the first');
}

// One panel for each set with such points, or a single one if sets are the axis. All panels are created before any is
// drawn, because a plot takes the room that its panel has.
function panels(target, series, make) {
  const sets = view.x === '' ? [null] : [...new Set(series.rows.map(row => row.s))];
  const plots = sets.map((_, i) => element('div', {class: 'plot', role: 'img', id: `${target.id}-${i}`}));
  target.replaceChildren(...sets.map((s, i) => element('div', {},
    ...(sets.length > 1 ? [element('h3', {}, results.setNames[s])] : []), plots[i])));
  sets.forEach((s, i) => make(plots[i], series.rows.filter(row => s === null || row.s === s)));
}

function showUse(series) {
  let hidden = 0;
  panels(at('use'), series, (plot, rows) => {
    const figure = useFigure(results, view, rows, 12, widthOf(plot));
    hidden += figure.hidden;
    if (figure.traces.length) draw(plot, figure, `use of resources by ${view.x || 'set'}`);
    else plot.append('These points say nothing of how busy a resource was.');
  });
  const notes = [];
  if (hidden) notes.push(`The 12 busiest; ${hidden} more had at least 1%.`);
  results.sets.forEach((set, s) => {
    const {resources, highest_use: highest} = set.left_out;
    if (resources) notes.push(`${results.setNames[s]}: ${resources} more resources were never busier than ` +
      `${digits(100 * highest)}% and are not in this page.`);
  });
  at('use-note').textContent = notes.join(' ');
}

const STAGES = [...new Set(results.sets.flatMap(set => set.waterfalls).flatMap(of => of.stages).map(of => of.name))];
const stageColour = name => pick(SPOTS, STAGES.indexOf(name));

function showWaterfall(series) {
  const operations = [...new Set(results.sets.flatMap(set => set.waterfalls.map(nameOfOperation)))];
  at('waterfall').hidden = operations.length === 0;
  if (operations.length === 0) return;
  if (!operations.includes(view.operation)) view.operation = operations[0];
  options(at('operation'), operations.map(name => [name, name]), view.operation);
  const latencies = series.rows.flatMap(row => row.set.waterfalls
    .filter(of => nameOfOperation(of) === view.operation).map(of => of.latency_ps[row.p] || 0));
  const longest = latencies.reduce((sofar, latency) => Math.max(sofar, latency), 1);
  panels(at('stages'), series, (plot, rows) => {
    const figure = waterfallFigure(results, view, rows, view.operation, longest, stageColour, widthOf(plot));
    if (figure.traces.length) draw(plot, figure, `stages of ${view.operation} by ${view.x || 'set'}`);
    else plot.append('No waterfall was recorded at these points (bench --waterfall).');
  });
}

function showOfSeries() {
  const series = results.series(view.x, view.only, view.x !== '');
  if (view.series === null || view.series >= series.length)
    view.series = Math.max(0, series.findIndex(group => group.rows.some(row => row.done)));
  options(at('series'), series.map((group, i) => [String(i), group.label]), String(view.series));
  showUse(series[view.series]);
  showWaterfall(series[view.series]);
}

// --- Tables and texts ---------------------------------------------------------------------------------------------

function statusOf(row) {
  const parts = [[row.done, 'done'], [row.failed, 'failed'], [row.missing, 'not run']].filter(([count]) => count);
  return parts.map(([count, word]) => row.point.runs.length === 1 ? word : `${count} ${word}`).join(', ');
}

function limitCells(limit) {
  return limit ? [resourceName(limit), `${digits(100 * limit.use)}%`, digits(limit.queue),
    digits(limit.growth)] : ['-', '-', '-', '-'];
}

function showPoints() {
  const metric = results.metrics.find(of => of.name === view.y) || {name: '', label: 'value', unit: ''};
  const several = results.sets.length > 1, axes = results.axes.filter(axis => axis.key !== '');
  const rows = results.rows.map(row => {
    const value = results.value(row, metric.name);
    const base = several && results.counterpart(row), first = base && results.value(base, metric.name);
    const ratio = value && first && first.mean ? digits(value.mean / first.mean) : '-';
    return {failed: row.failed > 0, cells: [...(several ? [results.setNames[row.s]] : []), String(row.point.number),
      ...axes.map(axis => axis.texts.get(row.at[axis.key])), statusOf(row),
      value ? withUnit(value.mean, metric.unit) : '-',
      hasInterval(value) ? `${withUnit(value.low, metric.unit)} to ${withUnit(value.high, metric.unit)}` : '-',
      ...(several ? [ratio] : []), ...limitCells(row.done ? row.point.limit : null)]};
  });
  const heads = [...(several ? ['set'] : []), 'point#', ...axes.map(axis => axis.key + '#'), 'seeds',
    metric.label + '#', '95% interval#', ...(several ? ['ratio#'] : []), 'limited by', 'busy#', 'queue#', 'growth#'];
  table(at('points-table'), heads, rows);
}

function showFailures() {
  const total = status => results.rows.reduce((sum, row) => sum + row[status], 0);
  const failed = total('failed'), missing = total('missing');
  at('failures').hidden = failed + missing === 0;
  at('failures-title').textContent = [failed ? `${plural(failed, 'run')} failed` : '',
    missing ? `${plural(missing, 'run')} not done yet` : ''].filter(Boolean).join(', ');
  // Seeds of a point with the same outcome share a line.
  const lines = results.rows.flatMap(row => {
    const seeds = new Map();
    for (const run of row.point.runs) {
      if (run.status === 'done') continue;
      const what = run.status === 'failed' ? run.error || 'failed' : 'not run';
      seeds.set(what, [...(seeds.get(what) || []), run.seed]);
    }
    return [...seeds].map(([what, of]) => ({
      cells: [String(row.point.number), results.where(row), of.join(', '), what]}));
  });
  table(at('failures-table'), ['point#', 'at', 'seeds', 'what happened'], lines);
}

// Extrapolated: no measurement of this NIC was found.
function nicText({nic, extrapolated}) { return extrapolated.includes(nic) ? `${nic} (extrapolated)` : nic; }

function describe(set) {
  const base = set.base;
  const varied = set.axes.map(axis => `${axis.key} = ${axis.values.join(', ')}`).join('; ');
  const entries = [['workload', base.workload], ['NIC', nicText(base)],
    ['extrapolated', base.extrapolated.join(', ')], ['host', base.host],
    ['topology', base.topology],
    ['set', base.sets.join(', ')], ['faults', base.faults.join('; ')], ['varied', varied],
    ['seeds', set.seeds.join(', ')], ['rnicsim', set.rnicsim], ['read from', set.source]].filter(([, text]) => text);
  return element('dl', {}, ...entries.flatMap(([term, text]) => [element('dt', {}, term), element('dd', {}, text)]));
}

function differencesOf(set) {
  const {baseline, differences, point} = set.configuration;
  const keys = [...new Set(differences.flatMap(of => Object.keys(of)))].sort();
  if (keys.length === 0) return element('p', {}, 'All points have the same configuration.');
  const others = key => [...new Set(differences.map(of => of[key]))].filter(text => text !== undefined);
  return table(element('table'), ['parameter', `baseline: point ${point}`, 'other points'], keys.map(key => ({
    cells: [key, baseline[key] ?? '-', others(key).map(text => text ?? '-').join(', ')]})));
}

function shippedOf({shipped, baseline}) {
  if (shipped.unknown) return element('p', {}, `Not compared with a shipped profile: ${shipped.unknown}.`);
  const keys = Object.keys(shipped.differs);
  if (keys.length === 0) return element('p', {}, `As ${shipped.nic} and ${shipped.topology} ship it.`);
  return table(element('table'), ['parameter', `${shipped.nic}, as shipped`, 'baseline'],
    keys.map(key => ({cells: [key, shipped.differs[key], baseline[key]]})));
}

function configurationOf(set, s) {
  const parts = [element('h3', {}, results.setNames[s]), describe(set)];
  if (!set.configuration) return [...parts, element('p', {}, 'No point has been run.')];
  const baseline = Object.entries(set.configuration.baseline);
  return [...parts, element('h3', {}, 'Baseline and the NIC profile'), shippedOf(set.configuration),
    element('h3', {}, 'Points and the baseline'), differencesOf(set),
    element('details', {}, element('summary', {}, `All ${baseline.length} parameters of the baseline`),
      table(element('table'), ['parameter', 'value'], baseline.map(cells => ({cells}))))];
}

function betweenSets() {
  const known = results.sets.map((set, s) => ({set, s})).filter(({set}) => set.configuration);
  if (known.length < 2) return [];
  const keys = [...new Set(known.flatMap(({set}) => Object.keys(set.configuration.baseline)))].sort();
  const rows = keys.map(key => [key, ...known.map(({set}) => set.configuration.baseline[key] ?? '-')])
    .filter(([, first, ...rest]) => rest.some(text => text !== first));
  return [element('h3', {}, 'Between the sets, at their baselines'), rows.length === 0
    ? element('p', {}, 'All sets have the same baseline.')
    : table(element('table'), ['parameter', ...known.map(({s}) => results.setNames[s])],
      rows.map(cells => ({cells})))];
}

function showTexts() {
  at('title').textContent = results.setNames.join(' and ');
  const seeds = new Set(results.sets.map(set => set.seeds.length));
  const bases = results.sets.map(
    ({base}) => [base.workload, nicText(base), base.host, base.topology].filter(Boolean).join(', '));
  at('summary').textContent = [plural(results.rows.length, 'point'),
    seeds.size === 1 ? plural([...seeds][0], 'seed') + ' each' : '', ...new Set(bases)].filter(Boolean).join('; ');
  at('configuration').replaceChildren(...betweenSets(), ...results.sets.flatMap(configurationOf));
  at('commands').replaceChildren(...results.sets.flatMap((set, s) => [element('h3', {}, results.setNames[s]),
    element('pre', {}, set.invocation.length ? set.invocation.map(quoted).join(' ')
      : `rnicsim ${set.command}: the file does not say its command line`)]),
  element('h3', {}, `This page, by rnicsim ${results.data.rnicsim}`),
  element('pre', {}, results.data.invocation.map(quoted).join(' ')));
}

function show() {
  remember();
  controls();
  showCurve();
  showRatio();
  showOfSeries();
  showPoints();
}

at('series').addEventListener('change', event => { view.series = Number(event.target.value); showOfSeries(); });
at('operation').addEventListener('change', event => { view.operation = event.target.value; showOfSeries(); });
darkness.addEventListener('change', () => { takeTheme(); show(); });
let width = innerWidth;
addEventListener('resize', () => {
  if ((width < NARROW) === (innerWidth < NARROW)) return;  // else plotly.js makes them fit
  width = innerWidth;
  show();
});
firstView();
showTexts();
showFailures();
show();
document.documentElement.dataset.openedMs = Math.round(performance.now());
})();
