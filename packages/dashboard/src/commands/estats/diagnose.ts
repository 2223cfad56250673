import {
  askSnapshot,
  attach,
  defineDocument,
  type EndpointName,
  type EndpointOptions,
  type Endpoints,
  endpointName,
  findEndpoints,
  type Output,
} from '@rocev2/command';
import { formatNs } from 'rocev2/internal/core';
import { type Diagnosis, diagnose, type Owner, stageLabel, stageText } from 'rocev2/internal/estats';

/** What `estats diagnose --json` prints for one process. */
interface EndpointDiagnosis extends EndpointName {
  /** One entry for each connection and operation. */
  readonly connections: readonly Diagnosis[];
}

const ESTATS_DIAGNOSE_DOCUMENT = defineDocument<Endpoints<EndpointDiagnosis>>('estats-diagnose');

export interface DiagnoseOptions extends EndpointOptions {
  readonly peer?: readonly string[];
}

export async function diagnoseEndpoints(options: DiagnoseOptions, output: Output): Promise<void> {
  const endpoints = await attach(options.endpoint, options.minutes);
  const here = (await findEndpoints(options.minutes)).map(({ snapshot }) => snapshot);
  const named = await Promise.all((options.peer ?? []).map((url) => askSnapshot({ url }, options.minutes)));
  const documents: EndpointDiagnosis[] = [];
  for (const { snapshot } of endpoints) {
    const found = diagnose(snapshot, [...here, ...named]);
    documents.push({ pid: snapshot.pid, address: snapshot.address, connections: found });
    output.line(output.colors.bold(endpointName(snapshot)));
    for (const diagnosis of found) print(diagnosis, output);
    if (found.length === 0) output.line('  no work request was completed and polled in this period');
    output.line();
  }
  output.document(ESTATS_DIAGNOSE_DOCUMENT, { endpoints: documents });
}

function print({ conn, op, count, meanNs, p99Ns, stage, share, owner, because }: Diagnosis, output: Output): void {
  const { colors } = output;
  const color: Record<Owner, (text: string) => string> = {
    sender: colors.yellow,
    pacing: colors.cyan,
    network: colors.magenta,
    responder: colors.red,
    application: colors.blue,
  };
  output.line(`  ${conn}  ${op}  ${count} x ${formatNs(meanNs)} (p99 ${formatNs(p99Ns)})`);
  output.line(`    ${color[owner](owner)} owns it: ${because}`);
  output.line(`    ${(share * 100).toFixed(0)} % of the time is ${stageLabel(stage)}, ${stageText(stage)}`);
}
