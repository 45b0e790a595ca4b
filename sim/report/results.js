// Data of the results, independent of their display: axes, rows, series, units.
'use strict';

// --- Values with units -------------------------------------------------------------------------------------------

const FACTORS = {
  number: {'': 1, 'k': 1e3, 'M': 1e6, 'G': 1e9},
  time: {'ps': 1, 'ns': 1e3, 'us': 1e6, 'ms': 1e9, 's': 1e12},
  bytes: {'B': 1, 'kB': 1e3, 'MB': 1e6, 'GB': 1e9, 'KiB': 1024, 'MiB': 1024 ** 2, 'GiB': 1024 ** 3},
  rate: {'b/s': 1, 'kb/s': 1e3, 'Mb/s': 1e6, 'Gb/s': 1e9, 'Tb/s': 1e12},
};

// "4 KiB" -> {kind: 'bytes', value: 4096}; null if the text is no quantity.
function quantity(text) {
  const parts = /^([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*([A-Za-z\/]*)$/.exec(text.trim());
  if (!parts) return null;
  for (const [kind, factors] of Object.entries(FACTORS))
    if (Object.hasOwn(factors, parts[2])) return {kind, value: Number(parts[1]) * factors[parts[2]]};
  return null;
}

// Equal texts for "4KiB", "4 KiB" and "4096 B".
function canonical(text) {
  const meant = quantity(text);
  return meant ? meant.kind + ' ' + meant.value : text;
}

const STEPS = {
  'ps': [[1e12, 's'], [1e9, 'ms'], [1e6, 'us'], [1e3, 'ns'], [1, 'ps']],
  'of 1': [[0.01, '%']],
  'bytes': [[1024 ** 3, 'GiB'], [1024 ** 2, 'MiB'], [1024, 'KiB'], [1, 'B']],
};

// Divisor for values up to `most` of a unit, and the name of the resulting unit.
function scaleOf(unit, most) {
  const steps = STEPS[unit] || [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, '']].map(
    ([size, prefix]) => [size, prefix + unit]);
  const [by, name] = steps.find(([size]) => Math.abs(most) >= size) || steps[steps.length - 1];
  return {by, name};
}

function digits(value) {
  if (value === null || value === undefined) return '-';
  if (value === 0) return '0';
  const size = Math.abs(value);
  return size >= 1e6 || size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

function withUnit(value, unit) {
  if (value === null || value === undefined) return '-';
  const scale = scaleOf(unit, value);
  return digits(value / scale.by) + (scale.name === '%' ? '%' : scale.name ? ' ' + scale.name : '');
}

// --- Names -------------------------------------------------------------------------------------------------------

const METRICS = {
  'rate_per_s': 'operation rate', 'goodput_bits_per_s': 'goodput', 'latency_ps.mean': 'mean latency',
  'latency_ps.p50': 'median latency', 'latency_ps.p99': '99th percentile of latency',
  'latency_ps.p99.9': '99.9th percentile of latency', 'latency_ps.max': 'longest latency',
};
const METRIC_ORDER = Object.keys(METRICS);

function flowMetric(name) {
  const parts = /^flow\[(\d+)\]\.(.*)$/.exec(name);
  return parts && {flow: Number(parts[1]), what: parts[2]};
}

// "h0 nic.port.tx"; an entry that is no resource, such as latency, has no host.
function resourceName(of) { return of.host ? `${of.host} ${of.resource}` : of.resource; }

class Results {
  constructor(data) {
    this.data = data;
    this.sets = data.sets;
    this.nameSets();
    this.axes = this.collectAxes();
    this.rows = this.collectRows();
    this.axes.forEach(axis => this.finishAxis(axis));
    this.metrics = this.collectMetrics();
    this.resources = this.collectResources();
  }

  // Sets with equal names get their sources as a distinction.
  nameSets() {
    const names = this.sets.map(set => set.name);
    const sources = this.sets.map(set => set.source);
    this.setNames = names.map((name, i) => names.indexOf(name) === names.lastIndexOf(name) ? name
      : sources.indexOf(sources[i]) === sources.lastIndexOf(sources[i]) ? `${name} (${sources[i]})`
        : `${name} (${i + 1})`);
  }

  // Axes of all sets, in the order of appearance; `set` is an axis if there are several sets, or no other axis.
  collectAxes() {
    const keys = [...new Set(this.sets.flatMap(set => set.axes.map(axis => axis.key)))];
    const short = key => key.split('.').pop();
    const axes = keys.map(key => ({
      key, label: keys.filter(other => short(other) === short(key)).length > 1 ? key : short(key), texts: new Map(),
    }));
    if (this.sets.length > 1 || axes.length === 0) axes.push({key: '', label: 'set of results', texts: new Map()});
    return axes;
  }

  // A set that does not vary a key takes the value from its configuration.
  valueAt(set, point, key) {
    const axis = set.axes.findIndex(candidate => candidate.key === key);
    if (axis >= 0) return point.values[axis];
    const {workload, nic, host, topology} = set.base;
    const parts = {workload, nic, host, topology};
    return parts[key] || this.configured(set, key) || 'not varied';
  }

  // "flow.qps" means the only flow of a workload.
  configured(set, key) {
    const baseline = set.configuration ? set.configuration.baseline : {};
    return baseline[key] ?? baseline[key.replace(/^flow\./, 'flow[0].')];
  }

  collectRows() {
    const rows = [];
    this.sets.forEach((set, s) => set.points.forEach((point, p) => {
      const at = {};
      for (const axis of this.axes) {
        const text = axis.key === '' ? this.setNames[s] : this.valueAt(set, point, axis.key);
        at[axis.key] = axis.key === '' ? text : canonical(text);
        if (!axis.texts.has(at[axis.key])) axis.texts.set(at[axis.key], text);
      }
      const count = status => point.runs.filter(run => run.status === status).length;
      rows.push({s, p, set, point, at, done: count('done'), failed: count('failed'), missing: count('missing')});
    }));
    return rows;
  }

  // Positions: the quantities themselves if all values are of one kind, else consecutive numbers.
  finishAxis(axis) {
    const values = [...axis.texts].map(([id, text]) => ({id, text, meant: axis.key === '' ? null : quantity(text)}));
    const kinds = new Set(values.map(value => value.meant && value.meant.kind));
    axis.numeric = values.length > 0 && kinds.size === 1 && !kinds.has(null);
    axis.kind = axis.numeric ? [...kinds][0] : null;
    if (axis.numeric) values.sort((a, b) => a.meant.value - b.meant.value);
    values.forEach((value, i) => { value.position = axis.numeric ? value.meant.value : i; });
    axis.values = values;
    axis.position = id => {
      const found = values.find(value => value.id === id);
      if (found) return found.position;
      const [kind, value] = id.split(' ');
      return axis.numeric && kind === axis.kind ? Number(value) : null;
    };
    axis.canBeLog = axis.numeric && values[0].position > 0;
    axis.log = axis.canBeLog && this.isGeometric(axis);
  }

  isGeometric(axis) {
    if (axis.values.length < 2) return false;
    const spacings = this.sets.flatMap(set => set.axes.filter(of => of.key === axis.key && of.values.length > 1))
      .map(of => of.spacing);
    if (spacings.includes('geometric')) return true;
    const positions = axis.values.map(value => value.position);
    const ratios = positions.slice(1).map((position, i) => position / positions[i]);
    return positions.length > 2 && Math.min(...ratios) > 1.3 && Math.max(...ratios) < 1.5 * Math.min(...ratios);
  }

  collectMetrics() {
    const metrics = new Map();
    for (const set of this.sets)
      for (const metric of set.metrics)
        if (!metrics.has(metric.name)) metrics.set(metric.name, {name: metric.name, unit: metric.unit});
    const flows = new Set([...metrics.keys()].map(flowMetric).filter(Boolean).map(of => of.flow));
    for (const metric of metrics.values()) {
      const of = flowMetric(metric.name);
      metric.ofFlow = Boolean(of);
      metric.label = of ? (METRICS[of.what] || of.what) + (flows.size > 1 ? `, flow ${of.flow}` : '') : metric.name;
      metric.rank = of ? of.flow * 100 + (METRIC_ORDER.indexOf(of.what) + 1 || 99) : 1e9;
    }
    return [...metrics.values()].sort((a, b) => a.rank - b.rank);
  }

  // "host resource" of all sets, the busiest first.
  collectResources() {
    const highest = new Map();
    for (const set of this.sets)
      for (const resource of set.resources) {
        const name = resourceName(resource);
        highest.set(name, Math.max(highest.get(name) || 0, ...resource.use.map(use => use || 0)));
      }
    for (const {point} of this.rows)
      if (point.limit) {
        const name = resourceName(point.limit);
        highest.set(name, Math.max(highest.get(name) || 0, 1 + point.limit.use));
      }
    return [...highest].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  }

  axis(key) { return this.axes.find(axis => axis.key === key); }

  // {mean, low, high, n} of a row; null: unknown.
  value(row, name) {
    const metric = row.set.metrics.find(of => of.name === name);
    if (!metric || metric.mean[row.p] === null) return null;
    const mean = metric.mean[row.p];
    const bound = side => metric[side] && metric[side][row.p] !== null ? metric[side][row.p] : mean;
    return {mean, low: bound('low'), high: bound('high'), n: Array.isArray(metric.n) ? metric.n[row.p] : metric.n};
  }

  // Rows that match `only` ({key: id}), grouped by their values except x: [{label, at, rows by x}].
  series(x, only, withoutSet = false) {
    const keys = this.axes.map(axis => axis.key).filter(key => key !== x && !(withoutSet && key === ''));
    const rows = this.rows.filter(row => keys.every(key => !only[key] || row.at[key] === only[key]));
    const varied = keys.filter(key => new Set(rows.map(row => row.at[key])).size > 1);
    const groups = new Map();
    for (const row of rows) {
      const id = JSON.stringify(keys.map(key => row.at[key]));
      if (!groups.has(id)) groups.set(id, {id, at: Object.fromEntries(keys.map(key => [key, row.at[key]])), rows: []});
      groups.get(id).rows.push(row);
    }
    const rank = (key, id) => this.axis(key).values.findIndex(value => value.id === id);
    const axis = this.axis(x);
    const result = [...groups.values()];
    for (const group of result) {
      group.rows.sort((a, b) => axis.position(a.at[x]) - axis.position(b.at[x]));
      group.varied = varied;
      group.label = varied.map(key => this.text(key, group.at[key])).join(', ') || 'all points';
      group.values = varied.map(key => this.axis(key).texts.get(group.at[key])).join(', ') || 'all points';
      group.keys = varied.map(key => this.axis(key).label).join(', ');
    }
    return result.sort((a, b) => keys.reduce((order, key) => order || rank(key, a.at[key]) - rank(key, b.at[key]), 0));
  }

  text(key, id) {
    const axis = this.axis(key);
    return key === '' ? id : `${axis.label} = ${axis.texts.get(id) || id}`;
  }

  // One line for each axis.
  place(row) {
    return this.axes.map(axis => axis.key === '' ? row.at[''] : `${axis.key} = ${axis.texts.get(row.at[axis.key])}`);
  }
  where(row) { return this.place(row).join(', '); }

  // True: the set has points with `key` = `id` when only points with value `only` (if given) are shown.
  has(set, key, id, only) {
    if (this.axis(key)) return !only || only === id;
    const configured = this.configured(set, key);
    return configured === undefined || canonical(configured) === id;
  }

  // The same point in the first set.
  counterpart(row) {
    return this.rows.find(other => other.s === 0 &&
      this.axes.every(axis => axis.key === '' || other.at[axis.key] === row.at[axis.key]));
  }
}
