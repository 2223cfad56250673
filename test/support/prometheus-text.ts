/** A strict reader of the Prometheus text format 0.0.4, independent of what writes it: throws where a scraper would refuse. */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface MetricFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: Sample[];
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;
const SUFFIXES: Readonly<Record<string, readonly string[]>> = { histogram: ['_bucket', '_sum', '_count'] };

export function parsePrometheus(text: string): Map<string, MetricFamily> {
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const families = new Map<string, MetricFamily>();
  let help: readonly [name: string, text: string] | undefined;
  let family: MetricFamily | undefined;
  const seen = new Set<string>();
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line);
    if (comment?.[1] === 'HELP') help = [comment[2], comment[3]];
    else if (comment?.[1] === 'TYPE') {
      const [, , name, type] = comment;
      if (families.has(name)) throw new Error(`${name} appears twice`);
      if (help?.[0] !== name) throw new Error(`${name} has no help`);
      family = { name, type, help: help[1], samples: [] };
      families.set(name, family);
    } else {
      if (seen.has(line.slice(0, line.lastIndexOf(' ')))) throw new Error(`twice: ${line}`);
      seen.add(line.slice(0, line.lastIndexOf(' ')));
      const sample = parseSample(line);
      const suffixes = SUFFIXES[family?.type ?? ''] ?? [''];
      if (!suffixes.some((suffix) => sample.name === `${family?.name}${suffix}`)) throw new Error(`stray: ${line}`);
      family!.samples.push(sample);
    }
  }
  for (const one of families.values()) check(one);
  return families;
}

function parseSample(line: string): Sample {
  const parts = SAMPLE.exec(line);
  if (parts === null) throw new Error(`not a sample: ${line}`);
  const labels: Record<string, string> = {};
  const text = parts[2] ?? '';
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const label = LABEL.exec(text);
    if (label === null) throw new Error(`bad labels: ${line}`);
    labels[label[1]] = label[2];
  }
  const value = Number(parts[3]);
  if (Number.isNaN(value)) throw new Error(`bad value: ${line}`);
  return { name: parts[1], labels, value };
}

/** Counters end in _total and do not sink below zero; a histogram's buckets grow up to its count. */
function check({ name, type, samples }: MetricFamily): void {
  if (type === 'counter' && (!name.endsWith('_total') || samples.some(({ value }) => value < 0))) {
    throw new Error(`${name} is no counter`);
  }
  if (type !== 'histogram') return;
  const series = new Map<string, { bounds: number[]; counts: number[]; count: number | undefined }>();
  for (const sample of samples) {
    const { le, ...rest } = sample.labels;
    const key = JSON.stringify(Object.entries(rest).sort());
    const one = series.get(key) ?? { bounds: [], counts: [], count: undefined };
    series.set(key, one);
    if (sample.name.endsWith('_bucket')) {
      one.bounds.push(le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le));
      one.counts.push(sample.value);
    } else if (sample.name.endsWith('_count')) one.count = sample.value;
  }
  for (const [key, { bounds, counts, count }] of series) {
    const grows = (numbers: number[]) => numbers.every((value, i) => i === 0 || value >= numbers[i - 1]);
    if (!grows(bounds) || !grows(counts)) throw new Error(`${name} ${key}: buckets do not grow`);
    if (bounds.at(-1) !== Number.POSITIVE_INFINITY || counts.at(-1) !== count)
      throw new Error(`${name} ${key}: no +Inf`);
  }
}
