import { counted, defineDocument, type Output } from '@rocev2/command';
import { type ClusterOptions, withCluster } from './cluster.js';

const EXTENTS_ACCEPT_DOCUMENT = defineDocument<ExtentsAcceptResult>('extents-accept');

/** The fields of `extents accept --json`. */
export interface ExtentsAcceptResult {
  /** Numbers of the extents that are sealed now. */
  readonly sealed: readonly number[];
}

export async function runAccept(
  extents: readonly number[] | undefined,
  options: ClusterOptions,
  output: Output,
): Promise<void> {
  await withCluster(options, output, async (client) => {
    const sealed = await client.acceptExtents(extents ?? []);
    output.line(`${counted(sealed.length, 'extent')} sealed${sealed.length > 0 ? `: ${sealed.join(', ')}` : ''}`);
    output.document(EXTENTS_ACCEPT_DOCUMENT, { sealed });
  });
}
