import { counted, defineDocument, type Output } from '@rocev2/command';
import type { UndeleteReport } from '../index.js';
import { type ClusterOptions, withCluster } from './cluster.js';

const EXTENTS_UNDELETE_DOCUMENT = defineDocument<ExtentsUndeleteResult>('extents-undelete');

/** The fields of `extents undelete --json`. */
export interface ExtentsUndeleteResult extends UndeleteReport {
  /** Its name. */
  readonly stream: string;
}

export async function runUndelete(
  stream: string,
  { disk = false, ...options }: ClusterOptions & { readonly disk?: boolean },
  output: Output,
): Promise<void> {
  const report = await withCluster(options, output, (client) =>
    disk ? client.undeleteDisk(stream) : client.undeleteStream(stream),
  );
  const { extents, silent } = report;
  output.line(`'${stream}' is back: ${counted(extents.length, 'extent')} (${extents.join(', ')})`);
  if (silent.length > 0) output.line(`nodes that did not answer: ${silent.join(', ')}`);
  output.document(EXTENTS_UNDELETE_DOCUMENT, { stream, ...report });
}
