import { counted, defineDocument, type Output } from '@rocev2/command';
import type { RecoveryReport } from '../index.js';
import { type ClusterOptions, withCluster } from './cluster.js';

const EXTENTS_RECOVER_DOCUMENT = defineDocument<ExtentsRecoverResult>('extents-recover');

/** The fields of `extents recover --json`. */
export interface ExtentsRecoverResult extends RecoveryReport {}

export async function runRecover(options: ClusterOptions, output: Output): Promise<void> {
  await withCluster(options, output, async (client) => {
    const report = await client.recoverMetadata();
    const { certain, open, missing, unknown, streams, silent } = report;
    output.line(`certain: ${counted(certain.length, 'extent')} with all records`);
    const line = (numbers: readonly number[], what: string) => {
      if (numbers.length > 0) output.line(`${what}: ${numbers.join(', ')}`);
    };
    line(open, "open, sealed next ('extents status' shows those that wait)");
    line(missing, 'in the metadata and on no node that answers: lost, on a silent node, or deleted since');
    line(unknown, 'on nodes that do not know the stream: not recovered');
    for (const { stream, extents } of streams) output.line(`added to '${stream}': ${extents.join(', ')}`);
    line(silent, 'nodes that did not answer');
    output.document(EXTENTS_RECOVER_DOCUMENT, report);
  });
}
