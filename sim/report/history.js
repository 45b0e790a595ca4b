// Page of `rnicsim report --history`: each number over the labels, with its change points.
'use strict';

(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const at = id => document.getElementById(id);
const MOST_PLOTS = 24;

function made(tag, text, attributes = {}) {
  const node = document.createElement(tag);
  node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function row(tag, cells) {
  const tr = document.createElement('tr');
  tr.append(...cells.map(text => made(tag, text)));
  return tr;
}

function fill(table, heads, rows) {
  const head = document.createElement('thead'), body = document.createElement('tbody');
  head.append(row('th', heads));
  body.append(...rows.map(cells => row('td', cells)));
  table.replaceChildren(head, body);
}

// Unit and divisor for display: results hold picoseconds and bits per second.
function scaleOf(name) {
  if (/_ps(\.|$)/.test(name) && !name.endsWith('.samples')) return {by: 1e6, unit: '\u00b5s'};
  if (name.endsWith('_bits_per_s')) return {by: 1e9, unit: 'Gb/s'};
  if (name.endsWith('_per_s')) return {by: 1e6, unit: 'million/s'};
  return {by: 1, unit: ''};
}

function text(value, name) {
  const {by, unit} = scaleOf(name);
  return `${Number((value / by).toPrecision(6))}${unit && ' ' + unit}`;
}

function plural(count, word) { return `${count} ${word}${count === 1 ? '' : 's'}`; }

function share(change) {
  const part = change.before === 0 ? null : change.after / change.before - 1;
  return part === null ? '-' : `${part > 0 ? '+' : ''}${(part * 100).toPrecision(3)} %`;
}

function size(change) { return change.before === 0 ? Infinity : Math.abs(change.after / change.before - 1); }

function showChanges() {
  const all = data.cases.flatMap(of => of.numbers.flatMap(number => number.changes.map(
    change => ({of, number, change, label: number.labels[change.at]}))));
  all.sort((a, b) => b.label - a.label || size(b.change) - size(a.change));
  at('changes-note').textContent = all.length === 0 ? 'No level changes.'
    : 'The label is the first one of the new level; before and after are means of the levels.';
  fill(at('changes'), ['label', 'case', 'number', 'before', 'after', 'change', 'p'], all.map(each =>
    [data.labels[each.label], each.of.name, each.number.name, text(each.change.before, each.number.name),
      text(each.change.after, each.number.name), share(each.change), each.change.p.toPrecision(2)]));
}

function traces(number) {
  const {by} = scaleOf(number.name);
  const x = number.labels.map(label => `${label + 1}. ${plain(cut(data.labels[label], 24))}`);
  const mean = number.mean.map(value => value / by);
  return [{x, y: mean, type: 'scatter', mode: 'lines+markers', line: {color: COLOURS[0], shape: 'hv'},
    marker: {size: 6}, hoverinfo: 'x+y', error_y: {type: 'data', symmetric: false, color: SOFT, thickness: 1, width: 3,
      array: number.most.map((value, i) => value / by - mean[i]),
      arrayminus: number.least.map((value, i) => mean[i] - value / by)}},
  {x: number.changes.map(change => x[change.at]), y: number.changes.map(change => mean[change.at]), type: 'scatter',
    mode: 'markers', marker: {size: 13, symbol: 'diamond-open', color: FAILED, line: {width: 2}}, hoverinfo: 'text',
    text: number.changes.map(change => plain(`${share(change)}: ${text(change.before, number.name)} \u2192 ` +
      text(change.after, number.name)))}];
}

function draw(number) {
  const {unit} = scaleOf(number.name);
  const place = made('div', '', {class: 'plot'});
  at('plots').append(made('h3', number.name), place);
  Plotly.newPlot(place, traces(number), layout(280, {
    xaxis: {type: 'category', gridcolor: GRID, linecolor: SOFT, automargin: true},
    yaxis: yaxis(unit)}), CONFIG);
}

function showNumbers() {
  const of = data.cases.find(each => each.name === at('case').value);
  at('plots').replaceChildren();
  if (!of) return;
  const prefix = at('which').value;
  const chosen = of.numbers.filter(number => prefix === 'changes' ? number.changes.length > 0
    : prefix === 'all' || number.name === prefix);
  at('drawn').textContent = chosen.length > MOST_PLOTS
    ? `The first ${MOST_PLOTS} of ${chosen.length} numbers; the list has each.`
    : `${chosen.length} of ${of.numbers.length} numbers`;
  chosen.slice(0, MOST_PLOTS).forEach(draw);
}

function showChoices() {
  const of = data.cases.find(each => each.name === at('case').value);
  const option = (value, text) => made('option', text, {value});
  at('which').replaceChildren(option('changes', 'those that change'), option('all', 'all'),
    ...(of ? of.numbers.map(number => option(number.name, number.name)) : []));
  if (of && !of.numbers.some(number => number.changes.length > 0)) at('which').value = 'all';
  showNumbers();
}

function showOutcomes() {
  const rows = data.labels.map((label, i) => ({label, i})).reverse().flatMap(({label, i}) => data.cases
    .filter(of => of.outcomes[i] && of.outcomes[i][0] !== 'passed')
    .map(of => [label, of.name, of.outcomes[i][0], of.outcomes[i][1]]));
  fill(at('outcomes'), ['label', 'case', 'outcome', 'first finding'], rows);
  if (rows.length === 0) at('outcomes').replaceChildren(made('caption', 'All cases passed at each label.'));
}

at('title').textContent = data.title;
at('summary').textContent = `${plural(data.labels.length, 'label')}, ${plural(data.cases.length, 'case')}`;
at('case').replaceChildren(...data.cases.map(of => made('option', of.name, {value: of.name})));
const changed = data.cases.find(of => of.numbers.some(number => number.changes.length > 0));
if (changed) at('case').value = changed.name;
at('case').addEventListener('change', showChoices);
at('which').addEventListener('change', showNumbers);
darkness.addEventListener('change', () => { takeTheme(); showNumbers(); });
showChanges();
showOutcomes();
showChoices();
document.documentElement.dataset.openedMs = Math.round(performance.now());
})();
