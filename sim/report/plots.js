// Traces and layouts for plotly.js. The legends are lists below the plots, so that long legends take no room from the
// plots.
'use strict';

// The curves' colours can be distinguished with colour blindness; after them come darker or lighter ones.
const LIGHT = {ink: '#1b1f24', soft: '#4d5661', grid: '#e4e7eb', zero: '#aab2bb', failed: '#b3261e', missing: '#7a838d',
  panel: '#fff', curves: ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#8a6d00', '#56b4e9', '#e69f00', '#5b3a8c',
    '#00476e', '#8f3f00', '#005c43', '#8b4a6f', '#4d3d00', '#2f6f93', '#946500', '#2d1b4d']};
const DARK = {ink: '#e6e9ed', soft: '#a9b2bd', grid: '#323941', zero: '#5c6672', failed: '#f2867d', missing: '#939ca6',
  panel: '#1d2126', curves: ['#56b4e9', '#ff9e4a', '#2fc49a', '#e9a3c9', '#d9c04a', '#a8d8f8', '#ffc55c', '#b79be8',
    '#2f8fc7', '#c96a1f', '#0f8f6d', '#b0709a', '#a08a2a', '#6fa8c8', '#c99a3a', '#8d74c4']};
let INK, SOFT, GRID, ZERO, FAILED, MISSING, PANEL, COLOURS;
const darkness = matchMedia('screen and (prefers-color-scheme: dark)');
function takeTheme() {
  ({ink: INK, soft: SOFT, grid: GRID, zero: ZERO, failed: FAILED, missing: MISSING, panel: PANEL, curves: COLOURS} =
    darkness.matches ? DARK : LIGHT);
}
takeTheme();
const SPOTS = ['#4e79a7', '#f28e2b', '#59a14f', '#e15759', '#76b7b2', '#edc948', '#b07aa1', '#9c755f', '#ff9da7',
  '#2f4b7c', '#a05195', '#86bcb6', '#d37295', '#8cd17d', '#499894', '#b6992d', '#79706e', '#d4a6c8'];
const SYMBOLS = ['circle', 'square', 'diamond', 'triangle-up', 'triangle-down', 'star', 'hexagon', 'cross'];
const DASHES = ['solid', 'dash', 'dot', 'dashdot', 'longdash', 'longdashdot'];
const FAMILY = 'system-ui, "DejaVu Sans", sans-serif';
// No button that uploads data: the data stays on this machine.
const CONFIG = {displaylogo: false, responsive: true, showSendToCloud: false, plotlyServerURL: '',
  modeBarButtonsToRemove: ['lasso2d', 'select2d']};

// Escapes a text, because Plotly interprets some markup.
function plain(text) {
  return String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}
function cut(text, most) { return text.length > most ? text.slice(0, most - 1) + '\u2026' : text; }

function pick(list, index) { return list[index % list.length]; }

// Each place has its own colour, and each set of results its own symbol and dash. With too many places, each value of
// the first varying key has a colour, and the rest symbols and dashes.
function styles(series) {
  const places = new Set(series.map(group => placeOf(group, group.varied.filter(key => key !== ''))));
  const split = places.size <= 8 ? key => key !== '' : (key, i) => i === 0;
  const colours = [], others = [];
  const index = (list, item) => { if (!list.includes(item)) list.push(item); return list.indexOf(item); };
  return series.map(group => {
    const colour = index(colours, placeOf(group, group.varied.filter(split)));
    const other = index(others, placeOf(group, group.varied.filter((key, i) => !split(key, i))));
    // When the colours are used up, the next round has other symbols and dashes.
    const look = other + Math.floor(colour / COLOURS.length);
    return {color: pick(COLOURS, colour), symbol: pick(SYMBOLS, look), dash: pick(DASHES, look)};
  });
}

function placeOf(group, keys) { return JSON.stringify(keys.map(key => group.at[key])); }

// Width of a plot in pixels below which texts get less room.
const NARROW = 600;
function most(width, wide, narrow) { return width < NARROW ? narrow : wide; }

// Ticks at the points, if their names fit.
function xaxis(axis, log, width) {
  const place = log ? Math.log10 : position => position;
  const places = axis.values.map(value => place(value.position));
  const least = Math.min(...places), last = Math.max(...places), span = last - least;
  const longest = Math.max(...axis.values.map(value => Math.min(24, value.text.length)));
  const room = span / Math.max(2, Math.min(14, width / 10 / Math.max(longest, 4)));
  const ticks = [];
  axis.values.forEach((value, i) => {
    const all = !axis.numeric && axis.values.length <= 20 && width >= NARROW;
    if (all || !ticks.length || places[i] - places[ticks[ticks.length - 1]] >= room) ticks.push(i);
  });
  const margin = span > 0 ? 0.04 * span : log ? 0.3 : 0.5 * (axis.numeric && axis.values[0].position || 1);
  const right = Math.max(2 * margin, 40 * span / width);  // where the text beside a mark has room
  return {
    type: log ? 'log' : 'linear', range: [least - margin, last + right], gridcolor: GRID, zeroline: false,
    linecolor: SOFT, ticks: 'outside', automargin: true, tickmode: 'array',
    tickvals: ticks.map(i => axis.values[i].position), ticktext: ticks.map(i => plain(cut(axis.values[i].text, most(width, 24, 12)))),
    title: titled(plain(cut(axis.key || axis.label, most(width, 90, 40)))),
  };
}

function titled(text) { return {text, standoff: 12, font: {size: 13}}; }

function yaxis(title, more = {}) {
  return {title: titled(title), gridcolor: GRID, zerolinecolor: ZERO, linecolor: SOFT, automargin: true,
    ticks: 'outside', ...more};
}

function layout(height, more) {
  return {height, font: {family: FAMILY, size: 13, color: INK}, paper_bgcolor: PANEL, plot_bgcolor: PANEL,
    hovermode: 'closest', margin: {l: 50, r: 14, t: 34, b: 50}, hoverlabel: {align: 'left', font: {size: 13}},
    showlegend: false, ...more};
}

function pointText(results, row, lines) {
  const counts = [`${row.done} of ${row.point.runs.length} seeds`];
  if (row.failed) counts.push(`${row.failed} failed`);
  if (row.missing) counts.push(`${row.missing} not run`);
  return [...results.place(row).map(line => plain(cut(line, 90))), ...lines, counts.join(', ')].join('<br>');
}

function limitText(limit) {
  if (!limit) return 'what limits it is not known';
  return plain('limited by ' + (limit.text || resourceName(limit)));
}

// One polygon for each range without a gap.
function bandTrace(xs, values, by, colour, id) {
  const x = [], y = [];
  for (let from = 0; from < xs.length; ++from) {
    let to = from;
    while (to < xs.length && values[to]) ++to;
    if (to - from >= 2) {
      const inside = [...Array(to - from).keys()].map(i => from + i), back = [...inside].reverse();
      x.push(...inside.map(i => xs[i]), ...back.map(i => xs[i]), null);
      y.push(...inside.map(i => values[i].high / by), ...back.map(i => values[i].low / by), null);
    }
    from = to;
  }
  return {x, y, type: 'scatter', mode: 'lines', fill: 'toself', fillcolor: colour + '2e', line: {width: 0},
    hoverinfo: 'skip', showlegend: false, legendgroup: id, name: 'band'};
}

// Interval of a point without a neighbour, where no band can be drawn.
function loneBars(values, by) {
  const lone = values.map((value, i) => value && !values[i - 1] && !values[i + 1]);
  const half = side => values.map((value, i) => lone[i] ? Math.abs(value[side] - value.mean) / by : 0);
  return {type: 'data', symmetric: false, array: half('high'), arrayminus: half('low'), thickness: 1.2, width: 4,
    visible: lone.some(Boolean)};
}

// Smaller marks for more points.
function markSize(axis, largest) { return axis.values.length > 120 ? 3 : axis.values.length > 40 ? 5 : largest; }

function curveTraces(results, view, group, style, metric, by) {
  const axis = results.axis(view.x);
  const xs = group.rows.map(row => axis.position(row.at[view.x]));
  const values = group.rows.map(row => results.value(row, metric.name));
  const text = group.rows.map((row, i) => pointText(results, row, values[i] ? [
    `<b>${plain(withUnit(values[i].mean, metric.unit))}</b>` + (values[i].low !== values[i].high
      ? ` (${plain(withUnit(values[i].low, metric.unit))} to ${plain(withUnit(values[i].high, metric.unit))})` : ''),
    limitText(row.point.limit)] : []));
  const symbols = group.rows.map(row => row.done < row.point.runs.length ? style.symbol + '-open' : style.symbol);
  const line = {
    x: xs, y: values.map(value => value ? value.mean / by : null), text, hoverinfo: 'text', type: 'scatter',
    mode: 'lines+markers', name: group.label, legendgroup: group.id, error_y: loneBars(values, by),
    line: {color: style.color, dash: style.dash, width: 2}, marker: {color: style.color, symbol: symbols, size: 8},
    meta: 'curve',
  };
  const band = values.some(value => value && value.low !== value.high);
  line.marker.size = markSize(axis, 8);
  return band ? [bandTrace(xs, values, by, style.color, group.id), line] : [line];
}

// Points without a value at the lower edge: failed, or not run yet.
function statusTraces(results, view, rows) {
  const axis = results.axis(view.x);
  const trace = (name, colour, symbol, list) => {
    const places = new Map();
    for (const row of list) {
      const x = axis.position(row.at[view.x]);
      places.set(x, [...(places.get(x) || []), row]);
    }
    const texts = [...places.values()].map(at => [`${at.length} ${name}`,
      ...at.slice(0, 6).map(row => plain(cut(results.where(row), 90)) +
        (row.failed ? '<br>  ' + plain(cut(row.point.runs.find(run => run.error)?.error || '', 100)) : '')),
      ...(at.length > 6 ? [`and ${at.length - 6} more`] : [])].join('<br>'));
    const x = [...places.keys()];
    return {x, y: x.map(() => 0.025), yaxis: 'y2', type: 'scatter', mode: 'markers', name: `${name} (${list.length})`,
      text: texts, hoverinfo: 'text', meta: name,
      marker: {color: colour, symbol, size: 11, line: {width: 2, color: colour}}};
  };
  const traces = [];
  const failed = rows.filter(row => row.done === 0 && row.failed);
  const missing = rows.filter(row => row.done === 0 && !row.failed);
  if (failed.length) traces.push(trace('failed', FAILED, 'x-thin', failed));
  if (missing.length) traces.push(trace('not run', MISSING, 'circle-open', missing));
  return traces;
}

function referenceTraces(results, view, metric, by) {
  const axis = results.axis(view.x);
  const byLabel = new Map();
  results.sets.forEach(set => set.references.forEach(reference => {
    if (reference.metric !== metric.name) return;
    const at = Object.fromEntries(Object.entries(reference.at).map(([key, text]) => [key, canonical(text)]));
    if (Object.entries(at).some(([key, id]) => key !== view.x && !results.has(set, key, id, view.only[key]))) return;
    const points = byLabel.get(reference.label) || {x: [], y: [], text: []};
    const place = at[view.x] === undefined ? axis.values.map(value => value.position)
      : [axis.position(at[view.x])].filter(position => position !== null);
    const where = Object.entries(reference.at).map(([key, text]) => `${key} = ${text}`).join(', ');
    for (const x of place) {
      points.x.push(x);
      points.y.push(reference.value / by);
      points.text.push(plain(`${reference.label}: ${withUnit(reference.value, metric.unit)}`) + '<br>' + plain(where));
    }
    byLabel.set(reference.label, points);
  }));
  return [...byLabel].filter(([, points]) => points.x.length).map(([label, points], i) => ({
    ...points, type: 'scatter', mode: points.x.length > 40 ? 'lines' : 'markers', name: label,
    line: {color: INK, dash: 'dot', width: 2}, hoverinfo: 'text', meta: 'reference',
    marker: {symbol: pick(['diamond-tall-open', 'star-open', 'pentagon-open', 'hourglass-open'], i), size: 14,
      color: INK, line: {width: 2, color: INK}}}));
}

// Smallest distance of the points on an axis, in pixels.
function spacing(axis, log, width) {
  const places = axis.values.map(({position}) => log ? Math.log10(position) : position).sort((a, b) => a - b);
  const span = places[places.length - 1] - places[0];
  const gaps = places.slice(1).map((place, i) => place - places[i]);
  return span > 0 ? 0.85 * width * Math.min(...gaps) / span : width;
}

// A row for each series, and a square for each point in the colour of its limit; the use beside it if it fits.
function limitTraces(results, view, series, rowHeight, apart) {
  const axis = results.axis(view.x);
  const size = Math.max(2, Math.min(15, rowHeight - 2, apart - 1));
  // Strokes of the row's height where squares would be too small.
  const square = colour => apart > 6 ? {symbol: 'square', size, color: colour}
    : {symbol: 'line-ns-open', size: Math.min(15, rowHeight - 2), color: colour,
      line: {width: Math.max(1, apart), color: colour}};
  const traces = new Map();
  const put = (name, style, row, y, share, text) => {
    if (!traces.has(name)) traces.set(name, {x: [], y: [], text: [], hovertext: [], hoverinfo: 'text', type: 'scatter',
      yaxis: 'y3', mode: apart >= 50 && rowHeight >= 15 ? 'markers+text' : 'markers',
      textposition: 'middle right', textfont: {size: 11, color: SOFT}, name, marker: style, meta: 'limit'});
    const trace = traces.get(name);
    trace.x.push(axis.position(row.at[view.x]));
    trace.y.push(y);
    trace.text.push(share);
    trace.hovertext.push(text);
  };
  series.forEach((group, y) => group.rows.forEach(row => {
    const limit = row.point.limit;
    const text = pointText(results, row, row.done ? [limitText(limit)] : []);
    if (row.done && limit) {
      const name = resourceName(limit);
      put(name, square(resourceColour(results, name)), row, y,
        `${Math.round(100 * limit.use)}%`, text);
    } else if (row.done) {
      put('not known', {symbol: 'square-open', size: Math.min(13, size), color: MISSING}, row, y, '', text);
    } else {
      const colour = row.failed ? FAILED : MISSING;
      put(row.failed ? 'failed' : 'not run', {symbol: row.failed ? 'x-thin' : 'circle-open', size: Math.min(11, size), color: colour,
        line: {width: 2, color: colour}}, row, y, '', text);
    }
  }));
  const order = name => (results.resources.indexOf(name) + 1 || 1e6);
  return [...traces].sort((a, b) => order(a[0]) - order(b[0])).map(([, trace]) => trace);
}

function resourceColour(results, name) { return pick(SPOTS, results.resources.indexOf(name)); }

function curveFigure(results, view, width) {
  const metric = results.metrics.find(of => of.name === view.y);
  const axis = results.axis(view.x), log = view.log && axis.canBeLog;
  const series = results.series(view.x, view.only), looks = styles(series);
  const rows = series.flatMap(group => group.rows);
  const highest = rows.map(row => results.value(row, metric.name)).filter(Boolean).reduce(
    (sofar, value) => Math.max(sofar, Math.abs(value.mean), Math.abs(value.high)), 0);
  const scale = scaleOf(metric.unit, highest);
  const below = Math.max(70, Math.min(26 * series.length + 10, 620)), gap = 64, above = 400;
  const rowHeight = below / series.length, plotWidth = width - most(width, 180, 120);
  const traces = [
    ...series.flatMap((group, i) => curveTraces(results, view, group, looks[i], metric, scale.by)),
    ...statusTraces(results, view, rows), ...referenceTraces(results, view, metric, scale.by),
    ...limitTraces(results, view, series, rowHeight, spacing(axis, log, plotWidth))];
  const height = above + gap + below;
  const by = series[0].keys ? `; rows by ${cut(series[0].keys, 60)}` : '';
  const told = series.map((_, i) => i).filter(i => i % Math.ceil(15 / rowHeight) === 0);
  const shape = layout(height + 94, {
    xaxis: {...xaxis(axis, log, plotWidth), anchor: 'y3'},
    yaxis: yaxis(plain(metric.label + (scale.name ? `, ${scale.name}` : '')), {
      domain: [(below + gap) / height, 1], rangemode: view.zero ? 'tozero' : 'normal'}),
    yaxis2: {overlaying: 'y', range: [0, 1], fixedrange: true, visible: false},
    yaxis3: yaxis('', {domain: [0, below / height], range: [series.length - 0.4, -0.6], tickmode: 'array', ticks: '',
      tickvals: told, ticktext: told.map(i => plain(cut(series[i].values, most(width, 40, 14)))), zeroline: false}),
    annotations: [{text: plain(width < NARROW ? 'What limits each point' : `What limits each point, and how busy it is${by}`), x: 0, xref: 'paper', y: below / height,
      yref: 'paper', xanchor: 'left', yanchor: 'bottom', yshift: 6, showarrow: false, font: {size: 13, color: SOFT}}],
  });
  return {traces, shape, series, rows, metric, scale};
}

function lineAt(y) {
  return {type: 'line', xref: 'paper', x0: 0, x1: 1, y0: y, y1: y, line: {color: SOFT, width: 1, dash: 'dot'}};
}

// All sets except the first, relative to the first.
function ratioFigure(results, view, width) {
  const axis = results.axis(view.x);
  const metric = results.metrics.find(of => of.name === view.y);
  const series = results.series(view.x, view.only), looks = styles(series);
  const traces = series.map((group, i) => {
    const points = group.rows.filter(row => row.s > 0).map(row => {
      const first = results.counterpart(row), value = results.value(row, metric.name);
      const base = first && results.value(first, metric.name);
      const y = value && base && base.mean ? value.mean / base.mean : null;
      return {x: axis.position(row.at[view.x]), y, row, value, base};
    });
    return {x: points.map(point => point.x), y: points.map(point => point.y), type: 'scatter', mode: 'lines+markers',
      name: group.label, hoverinfo: 'text', meta: 'ratio',
      text: points.map(point => point.y === null ? '' : pointText(results, point.row, [
        `<b>${digits(point.y)}</b> = ${plain(withUnit(point.value.mean, metric.unit))} / ` +
        plain(withUnit(point.base.mean, metric.unit))])),
      line: {color: looks[i].color, dash: looks[i].dash, width: 2},
      marker: {color: looks[i].color, symbol: looks[i].symbol, size: 8}};
  }).filter(trace => trace.y.some(y => y !== null));
  return {traces, shape: layout(320, {
    xaxis: xaxis(axis, view.log && axis.canBeLog, width), yaxis: yaxis('ratio'),
    shapes: [lineAt(1)]})};
}

// Use of the `count` busiest resources at some points.
function useFigure(results, view, rows, count, width) {
  const axis = results.axis(view.x);
  const at = (row, name) => {
    const found = row.set.resources.find(resource => resourceName(resource) === name);
    const value = column => found && found[column] ? found[column][row.p] : null;
    return {use: value('use'), queue: value('queue'), growth: value('growth')};
  };
  const busy = results.resources.map(name => ({name, values: rows.map(row => at(row, name))}))
    .map(of => ({...of, highest: Math.max(0, ...of.values.map(({use}) => use || 0))}))
    .filter(of => of.highest >= 0.01).sort((a, b) => b.highest - a.highest);
  const traces = busy.slice(0, count).map(({name, values}) => ({
    x: rows.map(row => axis.position(row.at[view.x])),
    y: values.map(({use}) => use === null ? null : 100 * use),
    text: values.map(({use, queue, growth}, i) => pointText(results, rows[i], [
      `<b>${plain(name)}: ${use === null ? '-' : digits(100 * use)}%</b>`,
      ...(queue === null ? [] : [`${digits(queue)} waiting`]),
      ...(growth === null ? [] : [`growing by ${digits(growth)}`])])),
    type: 'scatter', mode: 'lines+markers', name, hoverinfo: 'text', meta: 'use',
    line: {color: resourceColour(results, name), width: 2,
      dash: pick(DASHES, Math.floor(results.resources.indexOf(name) / SPOTS.length))},
    marker: {size: markSize(axis, 7), color: resourceColour(results, name), symbol: pick(SYMBOLS, results.resources.indexOf(name))}}));
  const shape = layout(380, {xaxis: xaxis(axis, view.log && axis.canBeLog, width),
    yaxis: yaxis('busy, %', {range: [0, Math.max(105, ...traces.flatMap(trace => trace.y))]}),
    shapes: [lineAt(100)]});
  return {traces, shape, hidden: busy.length - traces.length};
}

// Stages of one kind of work request; `longest`: longest latency of all panels.
function waterfallFigure(results, view, rows, operation, longest, stageColour, width) {
  const axis = results.axis(view.x);
  const scale = scaleOf('ps', longest);
  const tableOf = row => row.set.waterfalls.find(of => nameOfOperation(of) === operation);
  const shown = rows.filter(row => tableOf(row) && tableOf(row).latency_ps[row.p] !== null);
  const labels = shown.map(row => plain(cut(axis.texts.get(row.at[view.x]), 24)));
  const names = [...new Set(shown.flatMap(row => tableOf(row).stages.map(stage => stage.name)))];
  const mean = (row, name) => {
    const stage = tableOf(row).stages.find(of => of.name === name);
    return stage ? stage.mean_ps[row.p] || 0 : 0;
  };
  const traces = names.map(name => ({
    x: shown.map((_, i) => i), y: shown.map(row => mean(row, name) / scale.by), type: 'bar', name,
    marker: {color: stageColour(name)}, hoverinfo: 'text', textposition: 'none', meta: 'stage',
    text: shown.map(row => pointText(results, row, [
      `<b>${plain(name)}: ${withUnit(mean(row, name), 'ps')}</b>`,
      `of ${withUnit(tableOf(row).latency_ps[row.p], 'ps')}, ` +
      `${digits(100 * mean(row, name) / tableOf(row).latency_ps[row.p])}%`])),
  })).filter(trace => trace.y.some(y => y > 0));
  const room = Math.ceil(labels.length * 10 * Math.max(3, ...labels.map(label => label.length)) / width);
  const told = labels.map((_, i) => i).filter(i => i % Math.max(1, room) === 0);
  return {traces, shape: layout(420, {barmode: 'stack', bargap: 0.3,
    xaxis: {tickmode: 'array', tickvals: told, ticktext: told.map(i => labels[i]), automargin: true, linecolor: SOFT,
      title: titled(plain(axis.key || axis.label))},
    yaxis: yaxis(`mean time, ${scale.name}`, {range: [0, 1.05 * longest / scale.by]})})};
}

// --- Legends ------------------------------------------------------------------------------------------------------

const OUTLINES = {
  'circle': 'M-4,0A4,4 0 1,0 4,0A4,4 0 1,0 -4,0Z', 'square': 'M-4,-4H4V4H-4Z', 'diamond': 'M-5,0L0,-5L5,0L0,5Z',
  'triangle-up': 'M-5,4L0,-5L5,4Z', 'triangle-down': 'M-5,-4L0,5L5,-4Z', 'hexagon': 'M-4,-2.5L0,-5L4,-2.5V2.5L0,5L-4,2.5Z',
  'star': 'M0,-6L1.4,-1.9H5.7L2.3,0.7L3.5,4.9L0,2.3L-3.5,4.9L-2.3,0.7L-5.7,-1.9H-1.4Z',
  'cross': 'M-1.6,-5H1.6V-1.6H5V1.6H1.6V5H-1.6V1.6H-5V-1.6H-1.6Z', 'x-thin': 'M-4,-4L4,4M4,-4L-4,4',
  'diamond-tall': 'M-3,0L0,-6L3,0L0,6Z', 'pentagon': 'M0,-5L4.8,-1.5L2.9,4H-2.9L-4.8,-1.5Z',
  'hourglass': 'M-4,-5H4L-4,5H4Z', 'line-ew': 'M-6,0H6',
};
const STROKES = {'solid': '', 'dash': '7 4', 'dot': '2 3', 'dashdot': '7 3 2 3', 'longdash': '11 4',
  'longdashdot': '11 3 2 3'};

function drawn(name, attributes) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

// Sample of a trace's line and symbol.
function swatch(trace) {
  const one = value => Array.isArray(value) ? value[0] : value;
  const lines = (trace.mode || '').includes('lines'), wide = lines ? 34 : 16;
  const picture = drawn('svg', {width: wide, height: 14, viewBox: `${-wide / 2} -7 ${wide} 14`, 'aria-hidden': 'true'});
  if (lines)
    picture.append(drawn('line', {x1: -wide / 2, x2: wide / 2, y1: 0, y2: 0, stroke: trace.line.color, 'stroke-width': 2,
      'stroke-dasharray': STROKES[trace.line.dash] || ''}));
  const symbol = trace.type === 'bar' || trace.meta === 'limit' && one(trace.marker.symbol).startsWith('line') ? 'square' : one(trace.marker.symbol) || 'circle';
  const colour = one(trace.marker.color), open = symbol.endsWith('-open') || symbol === 'x-thin';
  picture.append(drawn('path', {d: OUTLINES[symbol.replace(/-open$/, '')] || OUTLINES.circle, stroke: colour,
    'stroke-width': open ? 1.6 : 0, fill: open ? 'none' : colour}));
  return picture;
}

// Clicking an entry hides its traces, or shows them again.
function legendList(target, traces, chosen, title) {
  const list = document.createElement('ul');
  list.className = 'legend' + (chosen.length > 60 ? ' long' : '') + (title ? ' title' : '');
  if (title) list.dataset.title = title;
  for (const i of chosen) {
    const button = document.createElement('button');
    button.type = 'button';
    button.setAttribute('aria-pressed', 'true');
    button.append(swatch(traces[i]), traces[i].name);
    const group = traces.map((_, other) => other).filter(
      other => other === i || traces[i].legendgroup && traces[other].legendgroup === traces[i].legendgroup);
    button.addEventListener('click', () => {
      const shown = button.getAttribute('aria-pressed') !== 'true';
      button.setAttribute('aria-pressed', String(shown));
      Plotly.restyle(target, {visible: shown}, group);
    });
    const item = document.createElement('li');
    item.append(button);
    list.append(item);
  }
  return list;
}

// Puts the legends below the plot, and removes the old ones.
function showLegends(target, traces) {
  while (target.nextElementSibling?.classList.contains('legend')) target.nextElementSibling.remove();
  const named = traces.map((_, i) => i).filter(i => traces[i].showlegend !== false);
  const limits = named.filter(i => traces[i].meta === 'limit'), others = named.filter(i => traces[i].meta !== 'limit');
  const lists = [];
  if (others.length > 1) lists.push(legendList(target, traces, others, ''));
  if (limits.length) lists.push(legendList(target, traces, limits, 'Limited by:'));
  target.after(...lists);
}

function nameOfOperation(of) { return of.operation + (of.one_way ? ', one way' : ''); }
