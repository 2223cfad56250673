import {
  askProgram,
  attach,
  defineDocument,
  type EndpointName,
  type EndpointOptions,
  type Endpoints,
  endpointName,
  type Output,
} from '@rocev2/command';
import { formatNs } from 'rocev2/internal/core';
import { type HistogramDocument, type StageName, stageText } from 'rocev2/internal/estats';

/** What `estats hist --json` prints for one process. */
interface EndpointHistogram extends EndpointName, HistogramDocument {}

const ESTATS_HIST_DOCUMENT = defineDocument<Endpoints<EndpointHistogram>>('estats-hist');

export interface HistOptions extends EndpointOptions {
  readonly stage: StageName;
  readonly op?: string;
  readonly conn?: string;
  readonly status?: string;
  readonly hgrm?: true;
}

const BAR_WIDTH = 50;

export async function hist(options: HistOptions, output: Output): Promise<void> {
  const endpoints = await attach(options.endpoint, options.minutes);
  const query = new URLSearchParams({ minutes: String(options.minutes), stage: options.stage });
  for (const name of ['op', 'conn', 'status'] as const) {
    const value = options[name];
    if (value !== undefined) query.set(name, value);
  }
  const documents: EndpointHistogram[] = [];
  for (const { target, snapshot } of endpoints) {
    const document = JSON.parse(await askProgram(target, `/histogram.json?${query}`)) as HistogramDocument;
    if (options.hgrm === true && !output.json) {
      const { toHgrm } = await import('./hgrm.js');
      output.line(`#[endpoint ${endpointName(snapshot)}, ${options.stage}, microseconds]`);
      output.line(toHgrm(document).trimEnd());
      continue;
    }
    documents.push({ pid: snapshot.pid, address: snapshot.address, ...document });
    output.line(`${output.colors.bold(endpointName(snapshot))}  ${options.stage}: ${stageText(options.stage)}`);
    draw(document, output);
    output.line();
  }
  output.document(ESTATS_HIST_DOCUMENT, { endpoints: documents });
}

function draw({ summary, buckets }: HistogramDocument, output: Output): void {
  if (summary.count === 0) {
    output.line('  no samples');
    return;
  }
  const { count, minNs, p50Ns, p90Ns, p99Ns, p999Ns, maxNs, sumNs } = summary;
  output.line(
    `  ${count} samples: min ${formatNs(minNs)}, mean ${formatNs(sumNs / count)}, p50 ${formatNs(p50Ns)}, p90 ${formatNs(p90Ns)}, ` +
      `p99 ${formatNs(p99Ns)}, p99.9 ${formatNs(p999Ns)}, max ${formatNs(maxNs)}`,
  );
  const octaves = new Map<number, number>();
  for (const [fromNs, , samples] of buckets) {
    const octave = Math.floor(Math.log2(Math.max(fromNs, 512)));
    octaves.set(octave, (octaves.get(octave) ?? 0) + samples);
  }
  const most = Math.max(...octaves.values());
  const [first, last] = [Math.min(...octaves.keys()), Math.max(...octaves.keys())];
  for (let octave = first; octave <= last; octave++) {
    const samples = octaves.get(octave) ?? 0;
    const from = octave === 9 ? '0 ns' : formatNs(2 ** octave);
    const bar = '#'.repeat(Math.ceil((samples / most) * BAR_WIDTH));
    output.line(
      `  ${from.padStart(8)} .. ${formatNs(2 ** (octave + 1)).padStart(8)}  ${String(samples).padStart(9)}  ${bar}`,
    );
  }
}
