// The page of `rnicsim calibrate --out`: each curve over the points of its reference.
'use strict';

darkness.addEventListener('change', () => location.reload());
const rows = JSON.parse(document.getElementById('data').textContent);

function made(tag, text, parent) {
  const node = document.createElement(tag);
  node.textContent = text;
  parent.append(node);
  return node;
}

// Positions of the checks: their numbers, if each check begins with one ("308 QPs").
function places(checks) {
  const numbers = checks.map(check => /^[\d.]+/.exec(check.what)).map(found => found ? Number(found[0]) : NaN);
  const numeric = checks.length > 2 && numbers.every((number, i) => i === 0 || number > numbers[i - 1]);
  return {numeric, x: numeric ? numbers : checks.map((check, i) => `${i + 1}. ${plain(cut(check.what, 44))}`)};
}

function traces(checks, {numeric, x}) {
  const text = checks.map(check => plain(`${check.what}: ${check.verdict}`));
  // An open tolerance has no upper end to draw.
  const above = checks.map(check => check.high >= 1e12 ? 0 : check.high - check.expected);
  return [
    {x, y: checks.map(check => check.expected), name: 'expected, and its tolerance', type: 'scatter', mode: 'markers',
      marker: {color: SOFT, symbol: 'line-ew-open', size: 16}, hoverinfo: 'y+name',
      error_y: {type: 'data', symmetric: false, array: above, color: SOFT, thickness: 1.4, width: 6,
        arrayminus: checks.map(check => check.expected - check.low)}},
    {x, y: checks.map(check => check.simulated), name: 'simulated', type: 'scatter',
      mode: numeric ? 'lines+markers' : 'markers', text, hoverinfo: 'y+text', line: {color: COLOURS[0]},
      marker: {size: 9, color: checks.map(check => check.pass ? COLOURS[0] : FAILED)}},
  ];
}

function plot(row, unit, checks, section) {
  const at = made('div', '', section);
  at.className = 'plot';
  const where = places(checks);
  const drawn = traces(checks, where);
  showLegends(at, drawn);
  const config = {...CONFIG, toImageButtonOptions: {format: 'svg', filename: row.id}};
  Plotly.newPlot(at, drawn, layout(380, {
    xaxis: {type: where.numeric ? 'linear' : 'category', gridcolor: GRID, linecolor: SOFT, automargin: true,
      title: where.numeric ? titled(plain(checks[0].what.replace(/^[\d.]+\s*/, ''))) : undefined},
    yaxis: yaxis(unit, {rangemode: 'tozero'}),
  }), config);
}

for (const row of rows) {
  const section = made('section', '', document.getElementById('rows'));
  made('h2', `${row.id}: ${row.setup}`, section);
  for (const unit of new Set(row.checks.map(check => check.unit)))
    plot(row, unit, row.checks.filter(check => check.unit === unit), section);
}
const all = rows.flatMap(row => row.checks);
document.getElementById('summary').textContent =
  `${all.filter(check => check.pass).length} of ${all.length} numbers are within their tolerance; docs/timing.md`;
