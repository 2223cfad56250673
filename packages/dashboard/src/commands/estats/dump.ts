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
import type { Dump } from 'rocev2/internal/estats';

/** What `estats dump --json` prints for one process. */
interface EndpointDumps extends EndpointName {
  /** The dumps, oldest first. */
  readonly dumps: readonly Dump[];
}

const ESTATS_DUMP_DOCUMENT = defineDocument<Endpoints<EndpointDumps>>('estats-dump');

export interface DumpOptions extends EndpointOptions {
  readonly now?: true;
}

export async function dump(options: DumpOptions, output: Output): Promise<void> {
  const documents: EndpointDumps[] = [];
  for (const { target, snapshot } of await attach(options.endpoint, options.minutes)) {
    const text =
      options.now === true ? await askProgram(target, '/dumps', 'POST') : await askProgram(target, '/dumps.json');
    const dumps = JSON.parse(text) as Dump[];
    documents.push({ pid: snapshot.pid, address: snapshot.address, dumps });
    output.line(`${output.colors.bold(endpointName(snapshot))}  ${dumps.length} dumps`);
    for (const one of dumps) print(one, output);
    if (dumps.length === 0) output.line("  no work request was slow or failed; '--now' dumps the present state");
  }
  output.document(ESTATS_DUMP_DOCUMENT, { endpoints: documents });
}

function print({ time, reason, conn, op, status, stagesNs, qp, totals, packets, device }: Dump, output: Output): void {
  output.line();
  output.line(`  ${time}  ${conn}  ${reason}${op === undefined ? '' : `: ${op} ${status}`}`);
  if (stagesNs !== undefined) {
    output.line(`    stages    ${list(Object.entries(stagesNs), (ns) => formatNs(ns))}`);
  }
  output.line(`    qp        ${list(Object.entries(qp), (value) => JSON.stringify(value))}`);
  output.line(`    waited    ${list(Object.entries(totals.waitsNs), (ns) => formatNs(ns))}`);
  output.line(`    counters  ${list(Object.entries(totals.counters), String)}`);
  output.line(`    device    ${list(Object.entries(device), String)}`);
  for (const { agoNs, direction, opcode, psn, bytes, answer } of packets) {
    const words = [`psn 0x${psn.toString(16).padStart(6, '0')}`, opcode, `${bytes} B`, answer ?? ''];
    output.line(
      `    ${`-${formatNs(agoNs)}`.padStart(10)}  ${direction === 'sent' ? '->' : '<-'}  ${words.join('  ').trimEnd()}`,
    );
  }
}

function list<T>(entries: ReadonlyArray<readonly [string, T]>, text: (value: T) => string): string {
  return entries.map(([name, value]) => `${name} ${text(value)}`).join(', ');
}
